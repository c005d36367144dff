"""Where the members of a cluster are read from: files or DNS, which a test changes while servers and clients read."""
import os

from dns_server import DnsServer

CLIENTS = "clients"


class FileMembers:
    """A file for each reader, so that their views can differ."""
    KIND = "file"
    LISTEN = None  # servers have addresses before they listen

    def __init__(self, directory):
        self.directory = directory
        self.seen = {}  # reader -> members
        self.members = {}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass

    def spec(self, reader):
        if reader not in self.seen:
            self.show(reader, self.members)
        return "file:%s" % self._path(reader)

    def publish(self, members):
        """name -> address, for all."""
        self.members = members
        for reader in self.seen:
            self.show(reader, members)

    def show(self, reader, members):
        """For one reader."""
        if self.seen.get(reader) == members:
            return
        self.seen[reader] = members
        lines = "".join("%s %s\n" % member for member in members.items())
        path = self._path(reader)
        # At once, as readers must see it.
        new = path.with_suffix(".new")
        new.write_text("# of a test\n" + lines)
        os.replace(new, path)

    def _path(self, reader):
        return self.directory / ("members-" + reader)


class DnsMembers:
    """SRV records, the same for everybody. Servers are found at whatever port they took."""
    KIND = "dns"
    LISTEN = "127.0.0.1:0"
    NAME = "_engram._tcp.tables.test"

    def __init__(self, _):
        self.server = DnsServer()

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *unused):
        self.server.__exit__()

    def spec(self, _):
        return "dns:%s@%s" % (self.NAME, self.server.address)

    def publish(self, members):
        servers = []
        for name, address in members.items():
            ip, port = address.rsplit(":", 1)
            servers.append((name + ".tables.test", ip, int(port)))
        self.server.set_servers(self.NAME, servers)

    def set_fault(self, fault=None):
        self.server.set_fault(self.NAME, fault)

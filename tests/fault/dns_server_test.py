"""The DNS server of tests itself: its answers as a client decodes them, and each of its faults."""
import ipaddress
import socket
import struct
import unittest

from dns_server import A, AAAA, NO_SUCH_NAME, OK, OPT, SERVFAIL, SRV, TRUNCATED, DnsServer, encode_name

SECONDS = 30  # for what must come
QUIET_SECONDS = 0.1  # for what must not
NAME = "_grpc._tcp.tables.test"


def query(name, kind, edns_bytes=None):
    head = struct.pack(">6H", 4711, 0x0100, 1, 0, 0, 0 if edns_bytes is None else 1)
    tail = b"" if edns_bytes is None else struct.pack(">BHHIH", 0, OPT, edns_bytes, 0, 0)
    return head + encode_name(name) + struct.pack(">HH", kind, 1) + tail


def decode_name(message, at):
    labels = []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), at + 1


def decode(message):
    """Flags and the data of the records."""
    identity, flags, questions, answers, _, _ = struct.unpack(">6H", message[:12])
    assert (identity, questions) == (4711, 1), message
    _, at = decode_name(message, 12)
    at += 4
    data = []
    for _ in range(answers):
        assert message[at:at + 2] == b"\xc0\x0c"
        kind, _, _, size = struct.unpack(">HHIH", message[at + 2:at + 12])
        at += 12 + size
        bits = message[at - size:at]
        if kind == SRV:
            data.append((decode_name(bits, 6)[0], struct.unpack(">H", bits[4:6])[0]))
        else:
            data.append(str(ipaddress.ip_address(bits)))
    assert at == len(message)
    return flags, data


class DnsServerTest(unittest.TestCase):
    def setUp(self):
        self.dns = self.enterContext(DnsServer())
        host, port = self.dns.address.split(":")
        self.where = (host, int(port))
        self.udp = self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.udp.settimeout(SECONDS)

    def ask(self, name, kind, **rest):
        """Code and data, over UDP."""
        self.udp.sendto(query(name, kind, **rest), self.where)
        flags, data = decode(self.udp.recv(65536))
        self.assertFalse(flags & TRUNCATED)
        return flags & 15, data

    def test_servers(self):
        self.dns.set_servers(NAME, [("t0.test", "127.0.0.1", 7100), ("t1.test", "fd00::1", 7101)])
        self.assertEqual(self.ask(NAME, SRV), (OK, [("t0.test", 7100), ("t1.test", 7101)]))
        self.assertEqual(self.ask("T0.test", A), (OK, ["127.0.0.1"]))
        self.assertEqual(self.ask("t1.test", A), (OK, []))
        self.assertEqual(self.ask("t1.test", AAAA), (OK, ["fd00::1"]))
        self.assertEqual(self.ask("t2.test", A), (NO_SUCH_NAME, []))
        self.dns.set_servers(NAME, [("t2.test", "127.0.0.2", 7102)])
        self.dns.set_address("t2.test", None)
        self.assertEqual(self.ask(NAME, SRV), (OK, [("t2.test", 7102)]))
        self.assertEqual(self.ask("t2.test", A), (NO_SUCH_NAME, []))
        self.assertEqual(self.dns.questions, 7)

    def test_long_answers(self):
        servers = [("t%d.tables.test" % i, "127.0.0.1", 7100 + i) for i in range(40)]
        self.dns.set_servers(NAME, servers)
        self.udp.sendto(query(NAME, SRV, edns_bytes=1232), self.where)
        self.assertEqual(decode(self.udp.recv(65536)), (0x8580 | TRUNCATED, []))
        self.assertEqual(len(self.ask(NAME, SRV, edns_bytes=4096)[1]), 40)
        with socket.create_connection(self.where, timeout=SECONDS) as tcp:
            for _ in range(2):
                message = query(NAME, SRV)
                framed = struct.pack(">H", len(message)) + message
                for part in (framed[:1], framed[1:20], framed[20:]):
                    tcp.sendall(part)
                reader = tcp.makefile("rb")
                answer = reader.read(struct.unpack(">H", reader.read(2))[0])
                self.assertEqual(decode(answer), (0x8580, [(host, port) for host, _, port in servers]))

    def test_faults(self):
        self.dns.set_servers(NAME, [("t%d.test" % i, "127.0.0.1", 7100 + i) for i in range(3)])
        for fault, wanted in (("servfail", (SERVFAIL, [])), ("empty", (OK, [])), ("half", (OK, [("t0.test", 7100)]))):
            self.dns.set_fault(NAME, fault)
            self.assertEqual(self.ask(NAME, SRV), wanted)
            self.assertEqual(self.ask("t1.test", A), (OK, ["127.0.0.1"]))
        self.dns.set_fault(NAME, "silent")
        self.udp.sendto(query(NAME, SRV), self.where)
        self.udp.settimeout(QUIET_SECONDS)
        with self.assertRaises(TimeoutError):
            self.udp.recv(65536)
        self.udp.settimeout(SECONDS)
        self.dns.set_fault(NAME)
        self.assertEqual(len(self.ask(NAME, SRV)[1]), 3)
        with self.assertRaises(ValueError):
            self.dns.set_fault(NAME, "melt")

    def test_what_is_no_query_has_no_answer(self):
        for message in (b"", b"x" * 11, query(NAME, SRV)[:20], bytes(12)):
            self.udp.sendto(message, self.where)
        self.assertEqual(self.ask(NAME, SRV), (NO_SUCH_NAME, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)

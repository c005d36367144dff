"""A DNS server whose answers a test changes while clusters ask it: SRV, A and AAAA over UDP and TCP."""
import contextlib
import ipaddress
import selectors
import socket
import struct
import threading

A, AAAA, SRV = 1, 28, 33
OPT = 41  # EDNS: says how long an answer over UDP may be
OK, SERVFAIL, NO_SUCH_NAME = 0, 2, 3
TRUNCATED = 0x0200
UDP_BYTES = 512
QUESTION_NAME = b"\xc0\x0c"  # "the name at byte 12"

FAULTS = ("servfail", "empty", "silent", "half")


def encode_name(name):
    labels = [label.encode() for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def encode_srv(target, port):
    return struct.pack(">HHH", 0, 1, port) + encode_name(target)


class Question:
    """The one question of a query. ValueError: it is none."""

    def __init__(self, message):
        if len(message) < 12:
            raise ValueError("a query of %d bytes" % len(message))
        self.id, _, questions, _, _, additional = struct.unpack(">6H", message[:12])
        if questions != 1:
            raise ValueError("%d questions" % questions)
        labels, at = [], 12
        while at < len(message) and message[at] != 0:
            labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
            at += 1 + message[at]
        end = at + 5
        if end > len(message):
            raise ValueError("a query that ends in its question")
        self.name = ".".join(labels).lower()
        self.type = struct.unpack(">H", message[at + 1:at + 3])[0]
        self.bytes = message[12:end]
        self.udp_bytes = UDP_BYTES
        rest = message[end:end + 5]
        if additional == 1 and len(rest) == 5 and rest[:3] == struct.pack(">BH", 0, OPT):
            self.udp_bytes = struct.unpack(">H", rest[3:])[0]

    def answer(self, code, records=(), limit=65535):
        """`records`: bytes of the data, all of the question's name and type."""
        def head(flags, count):
            return struct.pack(">6H", self.id, 0x8580 | code | flags, 1, count, 0, 0) + self.bytes
        body = b"".join(QUESTION_NAME + struct.pack(">HHIH", self.type, 1, 1, len(data)) + data
                        for data in records)
        whole = head(0, len(records)) + body
        return whole if len(whole) <= limit else head(TRUNCATED, 0)


class DnsServer:
    """On 127.0.0.1, a free port of UDP and TCP: `with DnsServer() as dns: ...`; `dns.address` is IP:PORT.
    Names that have no records do not exist. All methods may be called from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.names = {}   # name -> {type: [data]}
        self.faults = {}  # name -> one of FAULTS
        self.questions = 0
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.udp, self.tcp = self._bind()
        self.address = "127.0.0.1:%d" % self.udp.getsockname()[1]
        self.selector = self.stack.enter_context(selectors.DefaultSelector())
        ending, self.end = socket.socketpair()
        for sock in (ending, self.end):
            self.stack.enter_context(sock)
        for sock, do in ((self.udp, self._answer_udp), (self.tcp, self._accept), (ending, None)):
            self.selector.register(sock, selectors.EVENT_READ, do)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.end.send(b"x")
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.stack.close()

    def set_servers(self, name, servers):
        """SRV records of `name`: for each server (host, ip, port), and the host's address with it.
        The host's first label is the server's name."""
        with self.lock:
            self.names[name.lower()] = {SRV: [encode_srv(host, port) for host, _, port in servers]}
            for host, ip, _ in servers:
                self._set_address(host, ip)

    def set_address(self, host, ip):
        """None: it has none any more."""
        with self.lock:
            self._set_address(host, ip)

    def _set_address(self, host, ip):
        if ip is None:
            self.names.pop(host.lower(), None)
            return
        address = ipaddress.ip_address(ip)
        self.names[host.lower()] = {A if address.version == 4 else AAAA: [address.packed]}

    def set_fault(self, name, fault=None):
        """What becomes of answers about `name`: "servfail"; "empty", no records and no error; "silent",
        no answer; "half" of the records, rounded down; None: sound again."""
        if fault is not None and fault not in FAULTS:
            raise ValueError("fault %r is none of %s" % (fault, FAULTS))
        with self.lock:
            self.faults[name.lower()] = fault

    def answer(self, message, over_udp):
        """None: none."""
        try:
            question = Question(message)
        except ValueError:
            return None
        limit = question.udp_bytes if over_udp else 65535
        with self.lock:
            self.questions += 1
            fault = self.faults.get(question.name)
            types = self.names.get(question.name)
        if fault == "silent":
            return None
        if fault == "servfail":
            return question.answer(SERVFAIL)
        if types is None and fault != "empty":
            return question.answer(NO_SUCH_NAME)
        records = [] if fault == "empty" else types.get(question.type, [])
        if fault == "half":
            records = records[:len(records) // 2]
        return question.answer(OK, records, limit)

    def _bind(self):
        for _ in range(100):  # a free port of UDP is not always one of TCP
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", 0))
            tcp = socket.socket()
            try:
                tcp.bind(udp.getsockname())
            except OSError:
                udp.close()
                tcp.close()
                continue
            tcp.listen()
            return udp, tcp
        raise AssertionError("no port is free of UDP and TCP")

    def _run(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                key.data(key.fileobj)

    def _answer_udp(self, udp):
        message, asker = udp.recvfrom(4096)
        answer = self.answer(message, over_udp=True)
        if answer is not None:
            udp.sendto(answer, asker)

    def _accept(self, tcp):
        connection, _ = tcp.accept()
        received = bytearray()
        self.selector.register(connection, selectors.EVENT_READ,
                               lambda sock: self._answer_tcp(sock, received))

    def _answer_tcp(self, connection, received):
        try:
            data = connection.recv(4096)
            received += data
            while len(received) >= 2 and len(received) >= (end := 2 + struct.unpack(">H", received[:2])[0]):
                answer = self.answer(bytes(received[2:end]), over_udp=False)
                del received[:end]
                if answer is not None:
                    connection.sendall(struct.pack(">H", len(answer)) + answer)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            connection.close()

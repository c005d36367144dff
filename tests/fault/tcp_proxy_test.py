"""The proxy itself: that bytes come through it whole, and what each of its faults does to them."""
import pathlib
import socket
import socketserver
import tempfile
import threading
import time
import unittest

from proxy import Proxy

SECONDS = 30  # for what must come
QUIET_SECONDS = 0.1  # for what must not


class Echo(socketserver.ThreadingUnixStreamServer):
    """Sends back what it gets; HTTP/2 frames are bytes like all others here."""
    daemon_threads = True
    request_queue_size = 128

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                while data := self.request.recv(65536):
                    self.request.sendall(data)
            except OSError:
                pass

    def __init__(self, path):
        super().__init__(str(path), self.Handler)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


def read(sock, size):
    data = b""
    while len(data) < size and (more := sock.recv(size - len(data))):
        data += more
    return data


class TcpProxyTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="engram-")))
        self.echo = Echo(self.directory / "echo")
        self.addCleanup(self.echo.stop)
        self.proxy = self.start()

    def start(self, *args, to="echo"):
        proxy = Proxy("unix:%s" % (self.directory / to), self.directory / "proxy.log", *args)
        self.addCleanup(proxy.stop)
        return proxy

    def connect(self, proxy=None):
        host, port = (proxy or self.proxy).address.split(":")
        sock = socket.create_connection((host, int(port)), timeout=SECONDS)
        self.addCleanup(sock.close)
        return sock

    def connect_through(self):
        """A connection that has been answered."""
        sock = self.connect()
        sock.sendall(b"?")
        self.assertEqual(read(sock, 1), b"?")
        return sock

    def assert_silent(self, sock):
        sock.settimeout(QUIET_SECONDS)
        with self.assertRaises(TimeoutError):
            sock.recv(1)
        sock.settimeout(SECONDS)

    def test_bytes_come_through_whole(self):
        sent = bytes(range(256)) * 40000  # ten times what the proxy keeps
        sock = self.connect()
        sender = threading.Thread(target=lambda: (sock.sendall(sent), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        self.assertEqual(read(sock, len(sent)), sent)
        self.assertEqual(sock.recv(1), b"")
        sender.join()
        stats = self.proxy.stats()
        self.assertEqual((stats["up_bytes"], stats["down_bytes"]), (len(sent), len(sent)))
        self.assertEqual((stats["accepted"], stats["open"]), (1, 0))

    def test_delay(self):
        sock = self.connect_through()
        self.proxy.ask("delay_ms 60 40")
        start = time.monotonic()
        sock.sendall(b"a")
        self.assertEqual(read(sock, 1), b"a")
        self.assertGreaterEqual(time.monotonic() - start, 0.1)
        self.proxy.ask("delay_ms 3600000 0")
        sock.sendall(b"b")
        self.assert_silent(sock)
        self.proxy.ask("clear")
        self.assertEqual(read(sock, 1), b"b")

    def test_throttle(self):
        sock = self.connect_through()
        self.proxy.ask("throttle 0 100000")
        start = time.monotonic()
        sock.sendall(bytes(20000))
        self.assertEqual(len(read(sock, 20000)), 20000)
        self.assertGreaterEqual(time.monotonic() - start, 0.17)  # less a first burst

    def test_stall(self):
        old = self.connect_through()
        self.proxy.ask("stall on")
        new = self.connect()
        for sock in (old, new):
            sock.sendall(b"x")
            self.assert_silent(sock)
        # What nobody takes away is bounded.
        new.settimeout(QUIET_SECONDS)
        with self.assertRaises(TimeoutError):
            new.sendall(bytes(64 << 20))
        self.assertLessEqual(self.proxy.stats()["buffered_bytes"], 2 << 20)
        self.proxy.ask("stall off")
        self.assertEqual(read(old, 1), b"x")

    def test_resets(self):
        socks = [self.connect_through() for _ in range(3)]
        self.proxy.ask("reset")
        for sock in socks:
            with self.assertRaises(ConnectionResetError):
                sock.recv(1)
        socks = [self.connect_through() for _ in range(20)]
        self.proxy.ask("reset_share 0.5 10")
        for sock in socks:  # each in its time
            with self.assertRaises(ConnectionResetError):
                sock.recv(1)
        self.proxy.ask("clear")
        self.connect_through()
        self.assertEqual(self.proxy.stats()["resets"], 23)

    def test_close(self):
        sock = self.connect_through()
        self.proxy.ask("close")
        self.assertEqual(sock.recv(1), b"")

    def test_half_open(self):
        sock = self.connect_through()
        self.proxy.ask("half_open")
        sock.sendall(b"x")
        self.assert_silent(sock)
        self.connect_through()  # new ones are sound
        self.proxy.ask("clear")
        self.assert_silent(sock)
        self.assertEqual(self.proxy.stats()["frozen"], 1)

    def test_flips_bits_of_data_frames_only(self):
        def frame(kind, size):
            return size.to_bytes(3, "big") + bytes([kind, 0]) + (1).to_bytes(4, "big") + bytes(size)
        data, headers, small = frame(0, 4096), frame(1, 4096), frame(0, 500)
        sent = data + headers + small + data
        sock = self.connect()
        self.proxy.ask("flip 1")
        for at in range(0, len(sent), 1000):  # in parts that are no frames
            sock.sendall(sent[at:at + 1000])
        got = read(sock, len(sent))
        turned = [(i, a ^ b) for i, (a, b) in enumerate(zip(sent, got)) if a != b]
        self.assertEqual(len(turned), 2)
        for (at, bits), begin in zip(turned, (9, len(sent) - 4096)):
            self.assertEqual(bits & (bits - 1), 0)
            self.assertTrue(begin + 64 <= at < begin + 4096, at)
        self.assertEqual(self.proxy.stats()["flips"], 2)

    def test_connections_are_bounded(self):
        proxy = self.start("--max-connections", "2")
        kept = [self.connect(proxy) for _ in range(2)]
        for sock in kept:
            sock.sendall(b"x")
            self.assertEqual(read(sock, 1), b"x")
        with self.assertRaises(ConnectionResetError):
            self.connect(proxy).recv(1)

    def test_nobody_there(self):
        proxy = self.start(to="nobody")
        with self.assertRaises(ConnectionResetError):
            self.connect(proxy).recv(1)
        self.assertEqual(proxy.stats()["refused"], 1)

    def test_refuses_what_it_does_not_know(self):
        for line in ("melt", "", "delay_ms 1", "flip 2", "stall maybe", "reset_share 0.1 0"):
            with self.assertRaisesRegex(AssertionError, "error: "):
                self.proxy.ask(line)
        self.connect_through()

    def test_ends_with_its_stdin(self):
        self.proxy.process.stdin.close()
        self.assertEqual(self.proxy.wait(SECONDS), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

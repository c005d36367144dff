"""An HTTP(S) server on 127.0.0.1 that gives byte ranges of a directory's files, and does what
servers do wrong when a test wants it to."""
import http.server
import pathlib
import re
import ssl
import threading


class Fault:
    """What happens to one request. `cut`: the connection ends after so many bytes of the body;
    `status` with `headers`: nothing else is sent; `whole`: the range is ignored; `shift`: another range
    comes; `hold`: nothing more comes after `cut`."""

    def __init__(self, cut=None, status=None, headers=(), whole=False, shift=0, hold=False):
        self.cut, self.status, self.headers = cut, status, dict(headers)
        self.whole, self.shift, self.hold = whole, shift, hold


class RangeServer:
    """A context manager. `faults(path, range, count)` is asked about each request, with the number of
    requests before it, and returns a Fault or None. `requests` has (path, range or None, headers)."""

    def __init__(self, directory, faults=lambda path, wanted, count: None, certificate=None):
        self.directory, self.faults = pathlib.Path(directory), faults
        self.lock = threading.Lock()
        self.requests, self.sent_bytes = [], 0
        self.stopped = threading.Event()
        self.server = _Listener(("127.0.0.1", 0), _Handler)
        self.server.owner = self
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
            self.scheme = "https"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stopped.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % (self.scheme, self.server.server_address[1])

    def note(self, path, wanted, headers):
        with self.lock:
            self.requests.append((path, wanted, headers))
            return len(self.requests) - 1

    def sent(self, size):
        with self.lock:
            self.sent_bytes += size


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # clients go away in the middle: that is what is tested


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    PIECE = 64 << 10

    def log_message(self, *unused):
        pass

    def do_GET(self):
        owner = self.server.owner
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        wanted = (int(match[1]), int(match[2]) + 1) if match else None
        count = owner.note(self.path, wanted, dict(self.headers))
        fault = owner.faults(self.path, wanted, count) or Fault()
        if fault.status:
            return self.head(fault.status, {"Content-Length": 0, **fault.headers})
        path = owner.directory / self.path.lstrip("/")
        if ".." in self.path or not path.is_file():
            return self.head(404, {"Content-Length": 0})
        self.give(path, None if fault.whole else wanted, fault)

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def give(self, path, wanted, fault):
        size = path.stat().st_size
        begin, end = wanted or (0, size)
        begin, end = begin + fault.shift, min(end + fault.shift, size)
        if begin >= size:
            return self.head(416, {"Content-Length": 0, "Content-Range": "bytes */%d" % size})
        headers = {"Content-Length": end - begin, "ETag": '"%d"' % path.stat().st_mtime_ns}
        if wanted:
            headers["Content-Range"] = "bytes %d-%d/%d" % (begin, end - 1, size)
        self.head(206 if wanted else 200, {**headers, **fault.headers})
        stop = end if fault.cut is None else min(end, begin + fault.cut)
        with open(path, "rb") as file:
            file.seek(begin)
            while begin < stop:
                piece = file.read(min(self.PIECE, stop - begin))
                self.wfile.write(piece)
                self.server.owner.sent(len(piece))
                begin += len(piece)
        if fault.hold:
            self.server.owner.stopped.wait()
        if stop < end:
            self.close_connection = True

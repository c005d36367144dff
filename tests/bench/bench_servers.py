"""The servers of a benchmark: started on free ports of 127.0.0.1, always stopped."""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

START_SECONDS = 600  # to read a table and say so
STOP_SECONDS = 10
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded before any fork

Server = collections.namedtuple("Server", "address pid")

NGINX_CONF = """
daemon off;
pid {directory}/nginx.pid;
worker_processes auto;
events {{ worker_connections 256; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 100000;
  client_body_temp_path {directory}/nginx-1; proxy_temp_path {directory}/nginx-2;
  fastcgi_temp_path {directory}/nginx-3; uwsgi_temp_path {directory}/nginx-4; scgi_temp_path {directory}/nginx-5;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    root {root};
  }}
}}
"""


class StartError(Exception):
    pass


class Servers:
    """Starts servers. A context manager: at its end all are stopped, its directory is removed."""

    def __init__(self, parent=None):
        """`parent`: where the directory is to be; None: where temporary files are."""
        self.parent = parent

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="engram-bench-", dir=self.parent))
        self.processes = []
        return self

    def __exit__(self, *unused):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.01, deadline - time.monotonic()))
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, *command, seconds):
        """A program that ends by itself; its output goes to the terminal."""
        process = self._spawn(command, None, None)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StartError("%s did not end within %d s" % (command[0], seconds)) from None
        if code != 0:
            raise StartError("%s ended with %d" % (command[0], code))

    def start(self, name, *command, enter=None):
        """A server of this project, which says where it listens and when it is ready. `enter` is called in its
        process before."""
        return self.start_all([(name, command)], enter)[0]

    def start_all(self, named_commands, enter=None):
        """Several at once: a cluster's servers load side by side."""
        started = []
        for name, command in named_commands:
            log = self.directory / (name + ".log")
            with open(log, "wb") as err:
                process = self._spawn(command, subprocess.PIPE, err, enter=enter)
            started.append((process, log, _Lines(process.stdout)))
        servers = []
        for process, log, lines in started:
            address = self._line(process, log, lines, "listening on ")
            self._line(process, log, lines, "ready")
            servers.append(Server(address, process.pid))
        return servers

    def start_worker(self, *command, enter=None, environment=None):
        """A program that says "ready", then answers each line of JSON with another."""
        process = self._spawn(command, subprocess.PIPE, None, environment, enter, subprocess.PIPE)
        worker = Worker(process)
        try:
            worker.expect("ready", START_SECONDS)
        except BaseException:
            self.stop(worker)
            raise
        return worker

    def start_redis(self):
        port = _free_port()
        log = self.directory / "redis.log"
        with open(log, "wb") as out:
            process = self._spawn(["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
                                   "--appendonly", "no", "--dir", self.directory], out, out)
        return self._await_port(process, log, port)

    def start_memcached(self, memory_mb):
        port_file = self.directory / "memcached.port"
        log = self.directory / "memcached.log"
        command = ["memcached", "-l", "127.0.0.1", "-p", "-1", "-m", memory_mb, "-t", os.cpu_count()]
        if os.geteuid() == 0:
            command += ["-u", "root"]
        with open(log, "wb") as out:
            process = self._spawn(command, out, out, {"MEMCACHED_PORT_FILENAME": str(port_file)})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if port_file.exists() and "TCP INET: " in port_file.read_text():
                port = int(port_file.read_text().split("TCP INET: ")[1].split()[0])
                return self._await_port(process, log, port)
            time.sleep(0.01)
        raise self._failed(process, log, "a port")

    def start_nginx(self, root, certificate, key):
        """Gives the files of `root` over TLS, byte ranges too. Its workers may be another user."""
        port = _free_port()
        self.directory.chmod(0o755)
        (self.directory / "nginx.conf").write_text(NGINX_CONF.format(
            directory=self.directory, port=port, root=root, certificate=certificate, key=key))
        log = self.directory / "nginx.log"
        with open(log, "wb") as out:
            process = self._spawn(["nginx", "-c", self.directory / "nginx.conf", "-e", log], out, out)
        return self._await_port(process, log, port)

    def stop(self, server):
        """One of them, before all end."""
        process = next(process for process in self.processes if process.pid == server.pid)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)

    def _spawn(self, command, out, err, more_environment=None, enter=None, stdin=subprocess.DEVNULL):
        def begin():
            _die_with_parent()
            if enter is not None:
                enter()
        process = subprocess.Popen([str(word) for word in command], stdin=stdin, stdout=out, stderr=err,
                                   env={**os.environ, **(more_environment or {})}, preexec_fn=begin)
        self.processes.append(process)
        return process

    def _line(self, process, log, lines, prefix):
        line = lines.find(prefix, START_SECONDS)
        if line is None:
            raise self._failed(process, log, "a line '%s'" % prefix)
        return line[len(prefix):]

    def _await_port(self, process, log, port):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return Server("127.0.0.1:%d" % port, process.pid)
            time.sleep(0.01)
        raise self._failed(process, log, "an open port")

    def _failed(self, process, log, what):
        code = process.poll()
        end = log.read_text(errors="replace")[-2000:]
        return StartError("%s: no %s, %s\n%s" % (
            process.args[0], what, "still running" if code is None else "it ended with %d" % code, end))


class Worker:
    """What start_worker gives."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        self.lines = _Lines(process.stdout)
        self.read = 0

    def ask(self, question, seconds):
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; why is told below
        return json.loads(self._next(seconds))

    def expect(self, line, seconds):
        found = self._next(seconds)
        if found != line:
            raise StartError("%s said '%s', not '%s'" % (self.process.args[0], found, line))

    def _next(self, seconds):
        line = self.lines.at(self.read, seconds)
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            code = self.process.poll()
            raise StartError("%s said nothing, %s" % (" ".join(self.process.args[:3]),
                             "still running" if code is None else "it ended with %d" % code))
        self.read += 1
        return line


class _Lines:
    """Lines of a pipe, read by a thread so that a process is never blocked on them."""

    def __init__(self, pipe):
        self.changed = threading.Condition()
        self.lines = []
        self.ended = False
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                with self.changed:
                    self.lines.append(line.decode(errors="replace").rstrip("\n"))
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def find(self, prefix, seconds):
        def found():
            return next((line for line in self.lines if line.startswith(prefix)), None)
        with self.changed:
            self.changed.wait_for(lambda: found() is not None or self.ended, seconds)
            return found()

    def at(self, index, seconds):
        with self.changed:
            self.changed.wait_for(lambda: index < len(self.lines) or self.ended, seconds)
            return self.lines[index] if index < len(self.lines) else None


def _free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def _die_with_parent():
    """In the child: a benchmark that is killed without a chance to clean up takes its servers with it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

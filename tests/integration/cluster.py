"""Real table servers and compute workers for tests: started on sockets of a temporary
directory, watched through their two lines on stdout, always stopped."""
import contextlib
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import engram_oracle as oracle

BIN = pathlib.Path(os.environ["ENGRAM_BIN_DIR"])
GOLDEN = pathlib.Path(oracle.__file__).parent / "data"
START_SECONDS = 60  # generous: a loaded machine must not fail a test


class Process:
    """A server process. `expect` waits for a line of stdout, never longer than it says."""

    def __init__(self, command, log_path):
        # setpriv: a test that ctest kills leaves no server behind.
        self.command = ["setpriv", "--pdeathsig", "KILL"] + [str(word) for word in command]
        self.log_path = pathlib.Path(log_path)
        self.log_file = open(log_path, "wb")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log_file, text=True)
        self.lines = queue.Queue()
        self.seen = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def expect(self, prefix, seconds=START_SECONDS):
        """The rest of the first line that starts with `prefix`."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no line '%s' within %s s from %s\n%s" % (
                    prefix, seconds, " ".join(self.command), self.log())) from None
            if line is None:
                raise AssertionError("%s ended with %s before '%s'\n%s" % (
                    " ".join(self.command), self.process.wait(), prefix, self.log()))
            self.seen.append(line)
            if line.startswith(prefix):
                return line[len(prefix):].strip()

    def log(self):
        self.log_file.flush()
        return self.log_path.read_text(errors="replace")

    def wait(self, seconds=START_SECONDS):
        return self.process.wait(timeout=seconds)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.log_file.close()


class Cluster:
    """Table servers of one checkpoint and, on request, compute workers over them.

    Use as a context manager. `directory` is temporary and goes with the cluster.
    """

    def __init__(self, checkpoint, servers=1, replicas=1, workers=0, server_args=(), worker_args=()):
        self.checkpoint = checkpoint
        self.replicas = replicas
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="engram-"))
        self.names = ["t%d" % i for i in range(servers)]
        self.server_args, self.worker_args = list(server_args), list(worker_args)
        self.worker_count = workers
        self.servers, self.workers = {}, {}

    def __enter__(self):
        try:
            for name in self.names:
                self.start_server(name)
            for i in range(self.worker_count):
                self.start_worker("w%d" % i)
            for process in list(self.servers.values()) + list(self.workers.values()):
                process.expect("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for process in list(self.workers.values()) + list(self.servers.values()):
            process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def address(self, name):
        return "unix:%s/%s" % (self.directory, name)

    @property
    def tables(self):
        return ",".join(self.address(name) for name in self.names)

    @property
    def worker_addresses(self):
        return ",".join(self.address(name) for name in self.workers)

    def server_command(self, name):
        members = ",".join("%s=%s" % (n, self.address(n)) for n in self.names)
        return [BIN / "engram-table-server", "--checkpoint", self.checkpoint, "--listen", self.address(name),
                "--server-name", name, "--members", "static:" + members, "--replicas", self.replicas,
                *self.server_args]

    def worker_command(self, name):
        return [BIN / "engram-compute-worker", "--checkpoint", self.checkpoint, "--tables", self.tables,
                "--listen", self.address(name), *self.worker_args]

    def start_server(self, name, *extra):
        process = Process(self.server_command(name) + list(extra), self.directory / (name + ".log"))
        self.servers[name] = process
        return process

    def start_worker(self, name, *extra):
        process = Process(self.worker_command(name) + list(extra), self.directory / (name + ".log"))
        self.workers[name] = process
        return process


def engramctl(*args, check=True, seconds=120):
    """Runs engramctl; returns the finished process, with text output."""
    result = subprocess.run([str(BIN / "engramctl"), *map(str, args)], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=seconds)
    if check and result.returncode != 0:
        raise AssertionError("engramctl %s: exit %d\n%s%s" % (
            " ".join(map(str, args)), result.returncode, result.stdout, result.stderr))
    return result


def copy_golden_checkpoint(name, directory):
    """A copy of a golden checkpoint, with its manifest, in `directory`."""
    target = pathlib.Path(directory) / name
    shutil.copytree(GOLDEN / name, target)
    for path in [target, *target.iterdir()]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    engramctl("manifest", target)
    return target


@contextlib.contextmanager
def temporary_directory():
    with tempfile.TemporaryDirectory(prefix="engram-") as name:
        yield pathlib.Path(name)


def raw_tensors(path):
    """name -> (dtype, shape, bytes) of a safetensors file, for comparisons to the bit."""
    import json
    import struct
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], tuple(t["shape"]), data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items()}

"""Real table servers and compute workers for tests: started on sockets of a temporary
directory, watched through their two lines on stdout, always stopped."""
import contextlib
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile

import engram_oracle as oracle
from processes import BIN, Process

GOLDEN = pathlib.Path(oracle.__file__).parent / "data"


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

    def client_address(self, name):
        """Where clients look for a server."""
        return self.address(name)

    def server_binary(self, name):
        return BIN / "engram-table-server"

    @property
    def tables(self):
        return ",".join(self.client_address(name) for name in self.names)

    @property
    def worker_addresses(self):
        return ",".join(self.address(name) for name in self.workers)

    def server_command(self, name):
        members = ",".join("%s=%s" % (n, self.address(n)) for n in self.names)
        return [self.server_binary(name), "--checkpoint", self.checkpoint, "--listen", self.address(name),
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
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], tuple(t["shape"]), data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items()}

"""Memory that is this machine's, for as long as something is measured.

The host of a virtual machine may take free memory away, some of it within a second, and bringing it back costs more than
to read a disk into it. So a measurement of loads would be one of the host.
"""
import ctypes
import mmap
import pathlib
import re
import select
import subprocess
import sys

from bench_servers import StartError

AHEAD_BYTES = 128 << 20  # free and at hand; a host that is told of more takes it at once
STEP_BYTES = 32 << 20
LOOK_SECONDS = 0.002
START_SECONDS = 300
STOP_SECONDS = 10
MEMINFO = pathlib.Path("/proc/meminfo")


class MemoryAtHand:
    """A context manager. A process of its own takes `size` bytes of memory, writes to them, and gives them back bit by
    bit, always as much as what is measured has taken meanwhile: the kernel hands out first what came back last.
    `needed` bytes in all are to be there, or what is measured would do with less than it wants."""

    def __init__(self, size, needed):
        self.size, self.needed = size, needed

    def __enter__(self):
        if meminfo("MemAvailable") < self.size + self.needed:
            raise StartError("%.1f GB of memory are available; %.1f GB are held while what needs %.1f GB is measured" % (
                meminfo("MemAvailable") / 1e9, self.size / 1e9, self.needed / 1e9))
        self.holder = subprocess.Popen([sys.executable, __file__, str(self.size)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready, _, _ = select.select([self.holder.stdout], [], [], START_SECONDS)
        if not ready or self.holder.stdout.readline() != b"held\n":
            self._stop()
            raise StartError("%d bytes of memory could not be held" % self.size)
        return self

    def __exit__(self, kind, *unused):
        code = self._stop()
        if kind is None and code != 0:
            raise StartError("what held memory ended with %d" % code)

    def _stop(self):
        self.holder.stdin.close()
        try:
            return self.holder.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.holder.kill()
            return self.holder.wait()
        finally:
            self.holder.stdout.close()


def meminfo(name):
    return int(re.search(r"^%s: +(\d+) kB" % name, MEMINFO.read_text(), re.MULTILINE).group(1)) << 10


def private_memory(size):
    """As a table's is: in huge pages, nobody else's, given by the kernel when it is written to."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def hold(size):
    """Until standard input is closed."""
    size = -(-size // STEP_BYTES) * STEP_BYTES
    memory = private_memory(size)
    ctypes.memset((ctypes.c_char * size).from_buffer(memory), 1, size)
    print("held", flush=True)
    given, left_free = 0, meminfo("MemFree")
    while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
        while given < size and meminfo("MemFree") < left_free + AHEAD_BYTES:
            memory.madvise(mmap.MADV_DONTNEED, given, STEP_BYTES)
            given += STEP_BYTES


if __name__ == "__main__":
    hold(int(sys.argv[1]))

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

AHEAD_BYTES = 128 << 20  # free and at hand; a host that is told of more takes it at once
STEP_BYTES = 32 << 20
LOOK_SECONDS = 0.002
MEMINFO = pathlib.Path("/proc/meminfo")


class MemoryAtHand:
    """A context manager. A process of its own takes `size` bytes of memory, writes to them, and gives them back bit by
    bit, always as much as what is measured has taken meanwhile: the kernel hands out first what came back last."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.holder = subprocess.Popen([sys.executable, __file__, str(self.size)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        return self

    def __exit__(self, *unused):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


def free_bytes():
    return int(re.search(r"MemFree: +(\d+) kB", MEMINFO.read_text()).group(1)) << 10


def hold(size):
    """Until standard input is closed."""
    size = -(-size // STEP_BYTES) * STEP_BYTES
    memory = mmap.mmap(-1, size)
    memory.madvise(mmap.MADV_HUGEPAGE)
    ctypes.memset((ctypes.c_char * size).from_buffer(memory), 1, size)
    print("held", flush=True)
    given, left_free = 0, free_bytes()
    while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
        while given < size and free_bytes() < left_free + AHEAD_BYTES:
            memory.madvise(mmap.MADV_DONTNEED, given, STEP_BYTES)
            given += STEP_BYTES


if __name__ == "__main__":
    hold(int(sys.argv[1]))

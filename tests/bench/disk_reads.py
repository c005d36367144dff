"""Files on a disk: whether there is room, that none is in the page cache, how fast dd reads them."""
import os
import re
import shutil
import subprocess
import time

import memory_at_hand
from bench_servers import StartError

ROOM_LEFT = 2e9  # to others
READ_BYTES = 4 << 20
DD_SECONDS = 600


def need_room(directory, size, what):
    free = shutil.disk_usage(directory).free
    if free < size + ROOM_LEFT:
        raise StartError("%s takes %.1f GB and leaves %.1f GB to others, but %s has %.1f GB free; "
                         "--dir takes another disk" % (what, size / 1e9, ROOM_LEFT / 1e9, directory, free / 1e9))


def files_below(directory, pattern="*"):
    return sorted(path for path in directory.rglob(pattern) if path.is_file())


def size_of(files):
    return sum(path.stat().st_size for path in files)


def forget(files):
    """Takes the files out of the page cache (POSIX_FADV_DONTNEED, nothing of other files)."""
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def cached_bytes(files):
    """None where there is no fincore to tell."""
    if shutil.which("fincore") is None:
        return None
    command = ["fincore", "--bytes", "--noheadings", "--raw", "--output", "RES", *map(str, files)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return sum(int(word) for word in output.split())


def dd_seconds(files, direct):
    """One file after another, to nowhere. As dd says it: the start of its processes does not count."""
    seconds = 0
    for path in files:
        command = ["dd", "if=%s" % path, "of=/dev/null", "bs=%d" % READ_BYTES] + ["iflag=direct"] * direct
        result = subprocess.run(command, capture_output=True, text=True, timeout=DD_SECONDS,
                                env={**os.environ, "LC_ALL": "C"})
        told = re.search(r"copied, ([0-9.e+-]+) s", result.stderr)
        if result.returncode != 0 or told is None:
            raise StartError("dd of %s ended with %d: %s" % (path, result.returncode, result.stderr.strip()))
        seconds += float(told.group(1))
    return seconds


def into_memory_seconds(files):
    """Direct reads as dd's, but into memory that nobody has written to before, as a table's is, in huge pages."""
    size = sum((path.stat().st_size + READ_BYTES - 1) // READ_BYTES * READ_BYTES for path in files)
    with memory_at_hand.private_memory(size) as memory:
        view = memoryview(memory)
        began = time.monotonic()
        at = 0
        for path in files:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                while (got := os.readv(fd, [view[at:at + READ_BYTES]])) > 0:
                    at += READ_BYTES if got == READ_BYTES else (got + 4095) // 4096 * 4096
                at = (at + READ_BYTES - 1) // READ_BYTES * READ_BYTES
            finally:
                os.close(fd)
        seconds = time.monotonic() - began
        view.release()
    return seconds

"""What a virtual machine's host takes from it.

After a process with some GB had ended all others stood still, up to 0.2 s at a time, and the kernel counted time as
stolen. Such a machine may also give freed memory back to its host (free page reporting), and some stalls without stolen
time came with it: so both are told.
"""
import os
import pathlib
import time

CALM_SECONDS, MOST_STOLEN_SECONDS, MAX_SECONDS = 3, 0.01, 60
GIVEN_BACK = pathlib.Path("/sys/module/page_reporting/parameters/reported_kib")  # of some kernels


def stolen_seconds():
    """Since the machine started, of all its processors."""
    line = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0]
    return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")


def given_back_mb():
    """Since the machine started; 0 where the kernel does not tell."""
    return int(GIVEN_BACK.read_text()) // 1024 if GIVEN_BACK.exists() else 0


def await_calm():
    """Until the host has taken next to nothing for some seconds; at most a minute: others may want it all the time."""
    deadline = time.monotonic() + MAX_SECONDS
    calm = 0
    while calm < CALM_SECONDS and time.monotonic() < deadline:
        before = stolen_seconds(), given_back_mb()
        time.sleep(1)
        still = stolen_seconds() - before[0] <= MOST_STOLEN_SECONDS and given_back_mb() == before[1]
        calm = calm + 1 if still else 0

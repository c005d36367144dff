"""Time that a virtual machine's host takes from it, as the kernel knows it.

A guest that gives freed memory back to its host (free page reporting) does so on its own processors: after a process
with some GB has ended, nothing else may run for up to 0.2 s, and again, over some seconds. What is measured waits
until that is over.
"""
import os
import pathlib
import time

CALM_SECONDS, CALM_SHARE, MAX_SECONDS = 3, 0.01, 60


def stolen_seconds():
    """Since the machine started, of all its processors."""
    line = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0]
    return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")


def await_calm():
    """Until the host has taken next to nothing for some seconds; at most a minute: others may want it all the time."""
    deadline = time.monotonic() + MAX_SECONDS
    calm = 0
    while calm < CALM_SECONDS and time.monotonic() < deadline:
        before = stolen_seconds()
        time.sleep(1)
        calm = calm + 1 if stolen_seconds() - before <= CALM_SHARE else 0

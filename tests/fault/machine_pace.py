"""How fast a machine is while something is measured on it.

A virtual machine's host takes processors away, and the kernel counts that as stolen: after a process with some GB had
ended, all others stood still for up to 0.2 s. It does not count all that slows a machine: for a tenth of a second
system calls took several times their processor time, in threads that have nothing to do with each other. So some are
made again and again.
"""
import collections
import os
import pathlib
import statistics
import threading
import time

CALM_SECONDS, MOST_STOLEN_SECONDS, MAX_SECONDS = 3, 0.01, 60
PERIOD_SECONDS = 0.02
READS = 60  # of a small file of the kernel: some 0.1 ms. Not calculation, which is slowed less or not at all
SLOW = 2  # times the usual


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
        calm = calm + 1 if stolen_seconds() - before <= MOST_STOLEN_SECONDS else 0


class PaceWatch:
    """What slows the machine between now and `end`. To be left in any case: it is a thread that works."""

    def __init__(self):
        self._stolen = stolen_seconds()
        self._took = collections.defaultdict(list)  # tenth of a second -> processor seconds of the work
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._ended.set()
        self._thread.join()

    def _work(self):
        start = time.monotonic()
        with open("/proc/self/schedstat", "rb") as file:
            while not self._ended.wait(PERIOD_SECONDS):
                before = time.thread_time()
                for _ in range(READS):
                    os.pread(file.fileno(), 64, 0)
                self._took[int((time.monotonic() - start) * 10)].append(time.thread_time() - before)

    def end(self):
        """Figures. A tenth of a second is slow where the work took `SLOW` times the usual on the mean: one piece of it
        alone may have handled interrupts."""
        self.__exit__()
        usual = statistics.median(took for tenth in self._took.values() for took in tenth)
        paces = [statistics.mean(tenth) / usual for tenth in self._took.values()]
        return {"stolen_s": round(stolen_seconds() - self._stolen, 2),
                "slow_tenths_of_a_second": sum(pace >= SLOW for pace in paces),
                "slowest_times_the_usual": round(max(paces), 1)}

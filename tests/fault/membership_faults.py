"""Servers that see different members for a while, and servers that die while partitions move."""
import random

from elastic_cluster import ElasticCluster
from member_lists import DnsMembers, FileMembers
from report import Report

ROWS = ("--rows", "24x9,600x1")
LATE_SECONDS = 5
FLAPS, FLAP_SECONDS = 5, 0.9  # longer than a view must be stable
DEATH_SECONDS = 1.5
# So long that a server can be killed in it, wherever the machine is at the time.
LONG_LINGER = ("--announce-linger-seconds", 3)


def _load(running, size):
    return running.load(*ROWS, rate=size.rate, deadline_ms=size.deadline_ms).await_start()


def views_differ(size, checkpoint):
    """R = 1: a server joins; one hears of it 5 s later than others, one again and again of the opposite."""
    report = Report("views_differ")
    with ElasticCluster(checkpoint, FileMembers, servers=3, replicas=1) as running:
        load = _load(running, size)
        before = list(running.listed)
        running.start_server("t3")
        digests = set()
        for i in range(FLAPS):
            running.publish(*before, "t3", but=["t0"])
            load.go_on(FLAP_SECONDS / 2)
            digests.add(len({state.view_digest for state in running.states().values()}))
            running.publish(*before, but=["t0", "t2", "t3"])  # t1 and the clients see it go
            load.go_on(FLAP_SECONDS / 2)
        running.publish(*before, "t3", but=["t0"])
        load.go_on(max(0.0, LATE_SECONDS - FLAPS * FLAP_SECONDS))
        running.publish(*before, "t3")
        running.await_settled()
        load.go_on(size.calm_seconds)
        report.nothing_failed(load.end())
    report.at_least("views at once", max(digests), 2)
    return report

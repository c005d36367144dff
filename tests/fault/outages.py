"""Servers that die and come back."""
import random
import time

import admin
from fault_cluster import FaultCluster
from report import Report
from processes import START_SECONDS

ROWS = ("--rows", "24x9,600x1")
ALONE_RATE = 50
ALONE_DEADLINE_MS = 500
# What a caller may wait beyond its deadline: for the measurement, and on a machine that is busy elsewhere.
OVERRUN_MS, BUSY_OVERRUN_MS = 10, 2000
UNAVAILABLE_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}


def await_used(server):
    """Until clients have fetched rows from a server that has just started."""
    address = admin.address(server)
    deadline = time.monotonic() + START_SECONDS
    while admin.metric(admin.get(address, "/metrics")[1], "engram_table_rows_total") == 0:
        if time.monotonic() > deadline:
            raise AssertionError("no client came back to %s within %s s" % (address, START_SECONDS))
        time.sleep(0.02)


def check_outage(report, result):
    """Of the gathers that failed because there was nobody to ask."""
    report.at_most("wrong answers", result.wrong, 0)
    report.at_least("failed calls", result.failed, 1)
    report.at_most("failures of other kinds", len(result.codes - UNAVAILABLE_CODES), 0)
    report.at_most("failures that name no partition",
                   sum("partition" not in message for message in result.messages), 0)
    report.at_most("ms after the deadline, at most", result.deadline_overrun_ms, BUSY_OVERRUN_MS)
    report.at_most("ms after the deadline", result.deadline_overrun_ms, OVERRUN_MS, timing=True)
    report.notes += result.failures


def killed(size, checkpoint):
    """R = 2: one server after another is killed at a random moment, and comes back."""
    report = Report("killed")
    names = ("t0", "t1", "t2")
    moments = random.Random(1)
    with FaultCluster(checkpoint, servers=len(names), replicas=2) as running:
        load = running.load(*ROWS, rate=size.rate, deadline_ms=size.deadline_ms).await_start()
        for _ in range(size.kills):
            name = moments.choice(names)
            time.sleep(moments.uniform(0, 0.3))
            running.kill(name)
            server = running.start_server(name)
            server.expect("ready")
            await_used(server)
        result = load.end()
    report.nothing_failed(result)
    report.figures["kills"] = size.kills
    return report


def alone(size, checkpoint):
    """R = 1: what only the killed server had cannot be had; it can as soon as the server is back."""
    report = Report("alone")
    with FaultCluster(checkpoint, servers=2, replicas=1) as running:
        load = running.load(*ROWS, rate=ALONE_RATE, deadline_ms=ALONE_DEADLINE_MS).await_start()
        running.kill("t1")
        load.await_failure()
        load.go_on(size.calm_seconds)
        running.start_server("t1").expect("ready")
        ready = time.monotonic()
        recovered = load.await_recovery(size.quiet_seconds)
        result = load.end()
    check_outage(report, result)
    seconds = max(0.0, recovered - ready)
    report.at_most("s from ready to the last failure, at most", seconds, 20)
    report.at_most("s from ready to the last failure (told once a second)", seconds, 2, timing=True)
    return report

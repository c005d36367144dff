"""Clients that the server must survive: many that die in the middle of a word, and many at once."""
import contextlib
import socket
import time

import admin
import half_messages
import memory
from fault_cluster import FaultCluster
from report import Report
from processes import START_SECONDS

AT_A_TIME = 250
WARMUP_CLIENTS = 2500
FLAT_MB = 16
OTHERS_P99_MS = 250
# For all that have come at once and are not yet known to be dead.
CROWD_MB = 512
OPEN_FILES, IDLE_CLIENTS = 256, 1000
CALLER_ROWS = "1x30,24x40,1500x20,12000x5"
CALLER_GROWTH_MB = 192


def _await_gone(pid, open_files):
    """Until the server has noticed that they are dead."""
    deadline = time.monotonic() + START_SECONDS
    while memory.open_files(pid) > open_files:
        if time.monotonic() > deadline:
            raise AssertionError("%d files are open, %d before" % (memory.open_files(pid), open_files))
        time.sleep(0.01)


def half_sent(size, checkpoint):
    """Thousands of clients connect, send half of a message and die, while others are served."""
    report = Report("half_sent")
    with FaultCluster(checkpoint, servers=1) as running:
        pid = running.pid("t0")
        load = running.load("--rows", "24", rate=size.rate / 3, deadline_ms=10000).await_start()
        before = memory.open_files(pid)

        def attack(clients):
            for first in range(0, clients, AT_A_TIME):
                half_messages.attack(running.address("t0"), min(AT_A_TIME, clients - first))
                _await_gone(pid, before)
        attack(WARMUP_CLIENTS)
        warm_mb = memory.resident_mb(pid)
        attack(size.rude_clients)
        report.at_most("MB that the server grew", memory.resident_mb(pid) - warm_mb, FLAT_MB)
        for _ in range(size.rude_crowds):
            half_messages.attack(running.address("t0"), 10000)
            _await_gone(pid, before)
        report.at_most("MB that the server grew, 10,000 at once", running.peak_mb("t0") - warm_mb, CROWD_MB)
        result = load.end()
    report.nothing_failed(result, " of the others")
    report.figures["others_ms"] = result.latency_ms
    report.at_most("p99 of the others, ms", result.latency_ms["p99"], OTHERS_P99_MS, timing=True)
    return report


def crowd(size, checkpoint):
    """Many callers at once, from tiny to huge."""
    report = Report("crowd")
    with FaultCluster(checkpoint, servers=1) as running:
        pid = running.pid("t0")

        def flood():
            # More than can be answered: so many are always in flight.
            load = running.load("--rows", CALLER_ROWS, max_in_flight=size.callers, rate=20 * size.callers,
                                deadline_ms=60000, warmup_seconds=0).await_start()
            load.go_on(size.fault_seconds)
            return load.end()
        flood()
        warm_mb = memory.resident_mb(pid)
        memory.forget_peak(pid)
        result = flood()
        report.at_most("MB that the server grew at most", running.peak_mb("t0") - warm_mb, CALLER_GROWTH_MB)
    everything = result.data["all"]
    report.at_most("failed calls", everything["failed"] + result.data["unfinished"], 0)
    report.at_most("wrong answers", result.wrong, 0)
    report.at_least("calls", result.ok, 1)
    report.figures.update(rows_per_s=result.units_per_second, latency_ms=result.latency_ms)
    report.notes += [note for note in result.failures if "not sent" not in note]
    return report


class FewFiles(FaultCluster):
    """Its servers may have so many files open."""

    def server_command(self, name):
        return ["prlimit", "--nofile=%d:%d" % (OPEN_FILES, OPEN_FILES), *super().server_command(name)]


def too_many(size, checkpoint):
    """More clients connect than a server may have files open, and say nothing; others are served, and new ones again."""
    report = Report("too_many")
    with FewFiles(checkpoint, servers=1) as running, contextlib.ExitStack() as idle:
        pid, page = running.pid("t0"), admin.address(running.servers["t0"])
        load = running.load("--rows", "24", rate=size.rate / 3, deadline_ms=size.deadline_ms).await_start()
        before = memory.open_files(pid)
        for _ in range(IDLE_CLIENTS):
            client = idle.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(running.address("t0").removeprefix("unix:"))
        deadline = time.monotonic() + START_SECONDS
        while (refused := admin.metric(admin.get(page, "/metrics")[1], "engram_rpc_connections_refused_total")) == 0:
            if time.monotonic() > deadline:
                raise AssertionError("no connection was refused")
            time.sleep(0.05)
        report.figures["refused"] = refused
        report.at_most("files that are open", memory.open_files(pid), OPEN_FILES)
        load.go_on(size.calm_seconds)
        report.nothing_failed(load.end(), " of who was there before")
        idle.close()
        _await_gone(pid, before)
        late = running.load("--rows", "24", rate=size.rate / 3, deadline_ms=size.deadline_ms).await_start()
        late.go_on(size.calm_seconds)
        report.nothing_failed(late.end(), " of who comes afterwards")
    return report

"""Servers that start, start again and end, in order."""
import random
import signal
import time

import admin
import cluster_state
from elastic_cluster import ElasticCluster
from member_lists import DnsMembers, FileMembers
from report import Report

SECOND_SIGNAL_SECONDS = 10
SERVICE_UNAVAILABLE = 503


def first_start(size, checkpoint):
    """R = 2: servers come up one by one: nothing is loaded before all are there, and then all of it once."""
    report = Report("first_start")
    order = random.Random(size.rate).sample(["t0", "t1", "t2"], 3)
    with ElasticCluster(checkpoint, DnsMembers, servers=0, replicas=2, flags={"--expected-servers": 3}) as running:
        for name in order[:-1]:
            running.start_server(name)
            running.publish(*running.listed, name)
            _check_waiting(report, running, "%d of 3 expected servers are there" % len(running.listed))
        running.add(order[-1])
        for name in order[:-1]:
            running.servers[name].expect("ready")
        states = running.await_settled()
        owned = {member["name"]: member["then"]["bytes"] for member in running.plan(order, order)["members"]}
        report.at_most("bytes loaded off those owned",
                       sum(abs(state.moves.loaded_bytes - owned[name]) for name, state in states.items()), 0)
    return report


def _check_waiting(report, running, reason):
    for name in running.listed:
        running.await_state(name, lambda state: state.moves.waiting_for.startswith(reason))
    time.sleep(1)  # longer than members must be stable
    for name, state in running.states().items():
        report.at_most("partitions that are owned too early", state.moves.owned, 0)
        report.at_most("bytes that were loaded too early", state.moves.loaded_bytes, 0)
        status, text = admin.get(admin.address(running.servers[name]), "/readyz")
        report.at_least("status of a server that waits", status, SERVICE_UNAVAILABLE)
        report.at_least("servers that say what they wait for", reason in text, 1)


def rolling(size, checkpoint):
    """R = 2: all servers start again, one after another, at other addresses; nothing moves between the others."""
    report = Report("rolling")
    with ElasticCluster(checkpoint, DnsMembers, servers=3, replicas=2) as running:
        load = running.checked_load(size).await_start()
        members = list(running.listed)
        owned = {name: state.moves.owned for name, state in running.await_settled().items()}
        for name in members:
            others = [other for other in members if other != name]
            loaded = {other: running.state(other).moves.loaded_bytes for other in others}
            running.end(name, report)
            # As a pod's record: gone until it has a new address.
            running.publish(*others)
            running.start_server(name)
            running.publish(*members)
            running.servers[name].expect("ready")
            report.at_most("partitions that it lacks when it is ready",
                           owned[name] - cluster_state.held_count(running.state(name)), 0)
            report.at_most("bytes that others loaded meanwhile",
                           sum(running.state(other).moves.loaded_bytes - loaded[other] for other in others), 0)
        running.await_settled()
        report.nothing_failed(load.end())
    return report


def impatient(size, checkpoint):
    """A second SIGTERM ends a server at once, whatever it waits for since the first."""
    report = Report("impatient")
    with ElasticCluster(checkpoint, FileMembers, servers=2, replicas=1, flags={"--hand-over-seconds": 600}) as running:
        running.freeze("t1")  # which cannot take anything over
        server = running.servers["t0"]
        server.terminate()
        running.await_state("t0", lambda state: state.leaving)
        began = time.monotonic()
        server.terminate()
        report.at_most("exit code off that of the signal", abs(server.wait() + signal.SIGTERM), 0)
        report.at_most("s until it has ended", time.monotonic() - began, SECOND_SIGNAL_SECONDS)
        running.thaw("t1")
    return report

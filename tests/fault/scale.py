"""2 -> 4 -> 3 -> 5 servers under load. What moves is what placement says, to the byte."""
import concurrent.futures
import dataclasses

import cluster
import cluster_state
from elastic_cluster import ElasticCluster
from member_lists import DnsMembers, FileMembers
from report import Report

FULLEST, MOVED_BY_LEAST = 1.05, 1.15  # of its share; of the least possible
MANY_PARTITIONS = 1000  # of which that is asked
P99_RATIO = 3
REPLICAS = (1, 2)


@dataclasses.dataclass(frozen=True)
class Change:
    joins: tuple = ()
    leaves: tuple = ()

    def __str__(self):
        return " ".join(["+" + name for name in self.joins] + ["-" + name for name in self.leaves])


CHANGES = (Change(joins=("t2", "t3")), Change(leaves=("t1",)), Change(joins=("t4", "t5")))


def scale_file(size, checkpoint):
    """R = 1 and R = 2: 2 -> 4 -> 3 -> 5 servers; a file says who the members are."""
    return _scale("scale_file", size, checkpoint, FileMembers)


def scale_dns(size, checkpoint):
    """R = 1 and R = 2: 2 -> 4 -> 3 -> 5 servers; DNS says who the members are."""
    return _scale("scale_dns", size, checkpoint, DnsMembers)


def _scale(name, size, checkpoint, kind):
    report = Report(name)
    at_once = 1 if size.tail_seconds else len(REPLICAS)  # what is measured has the machine to itself
    with cluster.temporary_directory() as directory, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        checkpoint = size.make_scale_checkpoint(directory, checkpoint)
        runs = [pool.submit(_change_all, size, checkpoint, kind, replicas) for replicas in REPLICAS]
        for replicas, run in zip(REPLICAS, runs):
            report.add(run.result(), ", R = %d" % replicas)
    return report


def _change_all(size, checkpoint, kind, replicas):
    report = Report("")
    with ElasticCluster(checkpoint, kind, servers=2, replicas=replicas, flags=size.scale_flags) as running:
        if size.tail_seconds:
            for change in CHANGES:
                _change_and_measure(report, running, size, change)
        else:
            load = running.checked_load(size).await_start()
            for change in CHANGES:
                _check_moves(report, running, change, leave=_leave_at_once)
            report.nothing_failed(load.end())
    return report


def _change_and_measure(report, running, size, change):
    what = " (%s)" % change
    before = running.checked_load(size, seconds=size.tail_seconds).result(size.tail_seconds + 120)
    report.nothing_failed(before, what + " before")
    load = running.checked_load(size).await_start()
    _check_moves(report, running, change, leave=_drain)
    result = load.end()
    report.nothing_failed(result, what)
    report.figures.update({"before_ms" + what: before.latency_ms, "during_ms" + what: result.latency_ms,
                           "samples" + what: result.ok})
    report.at_most("p99 over that before" + what, result.latency_ms["p99"] / before.latency_ms["p99"], P99_RATIO,
                   timing=True)


def _check_moves(report, running, change, leave):
    before = list(running.listed)
    loaded = {name: state.moves.loaded_bytes for name, state in running.states().items()}
    _make(report, running, change, leave)
    states = running.await_settled()
    plan = running.plan(before, running.listed)
    wanted = {member["name"]: member["to_receive"]["bytes"] for member in plan["members"]}
    moved = {name: state.moves.loaded_bytes - loaded.get(name, 0) for name, state in states.items()}
    what = " (%s)" % change
    report.at_least("bytes moved" + what, sum(moved.values()), 1)
    report.at_most("bytes off what placement moves" + what,
                   sum(abs(moved[name] - wanted[name]) for name in moved), 0)
    report.figures["least" + what] = plan["least"]
    if plan["table"]["partitions"] >= MANY_PARTITIONS:
        report.at_most("bytes moved over the least possible" + what, sum(moved.values()) / plan["least"]["bytes"],
                       MOVED_BY_LEAST)
        report.at_most("partitions of the fullest server over its share" + what,
                       plan["fullest"]["then"]["of_share"], FULLEST)


def _make(report, running, change, leave):
    if change.joins:
        running.add(*change.joins)
    for name in change.leaves:
        rest = [listed for listed in running.listed if listed != name]
        leave(running, name, rest)
        running.end(name, report)
        running.publish(*rest)


def _drain(running, name, rest):
    """As docs/scaling.md has it: there is time, and others load at the pace of moves."""
    if running.members.KIND == "file":
        running.publish(*rest)
    else:
        cluster_state.leave(running.listening[name], name)
    running.await_state(name, lambda state: cluster_state.held_count(state) == 0)


def _leave_at_once(running, name, rest):
    """SIGTERM follows: others load as fast as they can what it alone has."""
    if running.members.KIND == "file":
        running.publish(*rest)
    elif running.replicas > 1:  # SIGTERM alone is taken for a restart
        cluster_state.leave(running.listening[name], name)

"""2 -> 4 -> 3 -> 5 servers under load. What moves is what placement says, to the byte."""
import concurrent.futures
import dataclasses
import statistics

import cluster
import cluster_state
import machine_pace
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
                moves = _Moves(running, change)
                moves.begin(_leave_at_once)
                moves.end(report)
            report.nothing_failed(load.end())
    return report


def _change_and_measure(report, running, size, change):
    what = " (%s)" % change
    machine_pace.await_calm()
    with _Measured(running.checked_load(size, seconds=size.tail_seconds)) as before:
        before.end(report, what + " before", size.tail_seconds + 120)
    moves = _Moves(running, change)
    with _Measured(running.checked_load(size)) as during:
        moves.begin(_drain)
        during.end(report, what)
    rest = running.checked_load(size).await_start()
    moves.end(report)
    report.nothing_failed(rest.end(), what + " until settled")
    report.at_most("p99 over that before" + what, during.p99_ms / before.p99_ms, P99_RATIO, timing=True)


class _Measured:
    """Load whose latencies are told, with how late it was itself and what slowed the machine meanwhile."""

    def __init__(self, load):
        self.load = load.await_start()
        self.pace = machine_pace.PaceWatch()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.pace.__exit__()

    def end(self, report, what, seconds=0):
        """Now, or when it ends by itself within so many seconds."""
        result = self.load.result(seconds) if seconds else self.load.end()
        self.p99_ms = result.latency_ms["p99"]
        report.nothing_failed(result, what)
        report.figures["measured" + what] = {
            "samples": result.ok, "latency_ms": result.latency_ms, "send_delay_ms": result.send_delay_ms,
            "p99_ms_of_the_median_second": statistics.median(
                second["p99_ms"] for second in result.data["seconds"] if second["ok"]),
            **self.pace.end()}


class _Moves:
    """One change, and what it moves."""

    def __init__(self, running, change):
        self.running, self.change = running, change
        self.before = list(running.listed)
        self.loaded = {name: state.moves.loaded_bytes for name, state in running.states().items()}

    def begin(self, leave):
        """Until those that join have loaded what is theirs, and `leave` is content."""
        if self.change.joins:
            self.running.add(*self.change.joins)
        for name in self.change.leaves:
            leave(self.running, name, self._rest(name))

    def end(self, report):
        """Those that leave have ended, and all is settled."""
        for name in self.change.leaves:
            rest = self._rest(name)
            self.running.end(name, report)
            self.running.publish(*rest)
        self._check(report, self.running.await_settled())

    def _rest(self, name):
        return [listed for listed in self.running.listed if listed != name]

    def _check(self, report, states):
        plan = self.running.plan(self.before, self.running.listed)
        wanted = {member["name"]: member["to_receive"]["bytes"] for member in plan["members"]}
        moved = {name: state.moves.loaded_bytes - self.loaded.get(name, 0) for name, state in states.items()}
        what = " (%s)" % self.change
        report.at_least("bytes moved" + what, sum(moved.values()), 1)
        report.at_most("bytes off what placement moves" + what,
                       sum(abs(moved[name] - wanted[name]) for name in moved), 0)
        report.figures["least" + what] = plan["least"]
        if plan["table"]["partitions"] >= MANY_PARTITIONS:
            report.at_most("bytes moved over the least possible" + what, sum(moved.values()) / plan["least"]["bytes"],
                           MOVED_BY_LEAST)
            report.at_most("partitions of the fullest server over its share" + what,
                           plan["fullest"]["then"]["of_share"], FULLEST)


def _drain(running, name, rest):
    """As docs/scaling.md has it: there is time, and others load at the pace of moves. Until it has nothing left."""
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

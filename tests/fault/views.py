"""What servers are told about the members differs for a while, or is nonsense. R = 1: whoever gives up too early is
noticed at once."""
from elastic_cluster import ElasticCluster
from member_lists import CLIENTS, DnsMembers, FileMembers
from report import Report

LATE_SECONDS = 5
FLAPS = 4
FLAP_SECONDS = LATE_SECONDS / FLAPS / 2  # with a view of its own, mostly
DEATH_SECONDS = 1


def views_differ(size, checkpoint):
    """R = 1: members change; one server hears of it 5 s later, one again and again, or of the opposite."""
    report = Report("views_differ")
    with ElasticCluster(checkpoint, FileMembers, servers=3, replicas=1) as running:
        load = running.checked_load(size).await_start()
        running.start_server("t3")
        changes = (("t0", "t1", "t2", "t3"), ("t0", "t1", "t3"))
        if not size.tail_seconds:
            changes = changes[:1]
        views = [_change(running, load, members) for members in changes]
        report.nothing_failed(load.end())
    report.at_least("views at once", min(views), 2)
    return report


def _change(running, load, members):
    """Returns how many views there were at once."""
    before = tuple(running.listed)
    views = 0
    for reader in ("t2", "t3", CLIENTS):
        running.show(reader, *members)
    for _ in range(FLAPS):
        for seen in (members, before):
            running.show("t1", *seen)
            load.go_on(FLAP_SECONDS)
            states = [running.state(name) for name in ("t0", "t1", "t2", "t3")]
            views = max(views, len({state.view_digest for state in states} - {""}))
    running.publish(*members)
    running.await_settled()
    return views


def dns_lies(size, checkpoint):
    """R = 1: DNS gives errors, empty answers and halves; at last for so long that the halves count."""
    report = Report("dns_lies")
    with ElasticCluster(checkpoint, DnsMembers, servers=3, replicas=1,
                        flags={"--death-delay-seconds": DEATH_SECONDS}) as running:
        load = running.checked_load(size).await_start()
        before = running.await_settled()
        for fault, seconds in (("servfail", 1.5), ("empty", 1.5), ("half", DEATH_SECONDS / 2), (None, 1.5)):
            running.members.set_fault(fault)
            load.go_on(seconds)
        after = running.await_settled()
        report.at_most("servers that loaded anything for it",
                       sum(after[name].moves.loaded_bytes != before[name].moves.loaded_bytes for name in after), 0)
        running.members.set_fault("half")
        for name in running.listed:
            running.await_state(name, lambda state: len(state.members) == 1)
        load.go_on(size.fault_seconds)
        running.members.set_fault()
        running.await_settled()
        report.nothing_failed(load.end())
    return report

"""Servers that are killed while partitions move, and come back."""
import random

from elastic_cluster import ElasticCluster
from member_lists import FileMembers
from report import Report

LINGER_SECONDS = 1.5
# So long that a server can be killed in it, wherever the machine is at the time.
SLOWLY = {"--announce-linger-seconds": LINGER_SECONDS, "--move-mb-per-second": 1}


def _kill_in(running, name, seconds):
    """`seconds`: from now, for which the load goes on."""
    running.loads[-1].go_on(seconds)
    running.kill(name)
    running.start_again(name)
    running.await_settled()


def killed_moving(size, checkpoint):
    """R = 2: a giver is killed while a server joins, a taker while that one leaves; both come back."""
    report = Report("killed_moving")
    moments = random.Random(2)
    with ElasticCluster(checkpoint, FileMembers, servers=3, replicas=2, flags=SLOWLY) as running:
        load = running.checked_load(size).await_start()
        running.start_server("t3")
        running.publish("t0", "t1", "t2", "t3")
        running.await_state("t3", lambda state: state.moves.loaded_bytes > 0)
        _kill_in(running, "t0", moments.uniform(0, LINGER_SECONDS))

        loaded = running.state("t1").moves.loaded_bytes
        running.publish("t0", "t1", "t2")
        running.await_state("t1", lambda state: state.moves.loaded_bytes > loaded)
        _kill_in(running, "t1", moments.uniform(0, LINGER_SECONDS))
        left = running.await_state("t3", lambda state: not state.moves.to_free and not state.moves.lingering)
        report.at_most("bytes of rows that the removed one has", left.moves.memory_bytes, 0)
        report.nothing_failed(load.end())
    return report


def killed_taker(size, checkpoint):
    """R = 1: a server that joins is killed before the others have given up, and comes back."""
    report = Report("killed_taker")
    moments = random.Random(3)
    with ElasticCluster(checkpoint, FileMembers, servers=2, replicas=1, flags=SLOWLY) as running:
        load = running.checked_load(size).await_start()
        for _ in range(size.kills // 2 if size.tail_seconds else 1):
            running.start_server("t2")
            running.publish("t0", "t1", "t2")
            running.await_state("t2", lambda state: state.moves.loaded_bytes > 0)
            _kill_in(running, "t2", moments.uniform(0, LINGER_SECONDS / 2))
            running.publish("t0", "t1")
            running.end("t2", report)
            running.await_settled()
        report.nothing_failed(load.end())
    return report

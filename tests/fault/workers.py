"""Compute workers that die, drain and come back, under steps on Forward streams."""
from fault_cluster import FaultCluster
from report import Report

STEPS = ("--tokens", "1x5,9x1", "--mode", "forward")
RATE = 30


def workers(size, checkpoint):
    """One of two workers is killed, comes back, and then the other one drains."""
    report = Report("workers")
    with FaultCluster(checkpoint, servers=2, replicas=2, workers=2) as running:
        load = running.load_steps(*STEPS, rate=RATE, deadline_ms=4 * size.deadline_ms).await_start()
        for _ in range(max(1, size.tail_seconds // 20)):
            running.kill("w0")
            load.go_on(size.fault_seconds)
            running.start_worker("w0").expect("ready")
            load.go_on(size.calm_seconds)
            running.workers["w1"].terminate()
            report.at_most("exit code of the drained worker", running.workers["w1"].wait(), 0)
            running.start_worker("w1").expect("ready")
            load.go_on(size.calm_seconds)
        result = load.end()
    report.nothing_failed(result)
    return report

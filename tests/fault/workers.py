"""Compute workers that die, drain, stop and come back, under steps."""
import time

import admin
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


def worker_stopped(size, checkpoint):
    """One of two workers gets SIGSTOP for longer than a deadline, under both kinds of steps, and goes on."""
    report = Report("worker_stopped")
    deadline_ms = 2 * size.deadline_ms
    with FaultCluster(checkpoint, servers=2, replicas=2, workers=2) as running:
        loads = {mode: running.load_steps("--tokens", "1x5,9x1", "--mode", mode, rate=RATE, deadline_ms=deadline_ms)
                 for mode in ("forward", "apply")}
        for load in loads.values():
            load.await_start()
        for _ in range(max(1, size.tail_seconds // 20)):
            running.freeze("w0")
            time.sleep(1.5 * deadline_ms / 1000)
            running.thaw("w0")
            time.sleep(1 + size.calm_seconds)
        results = {mode: load.end() for mode, load in loads.items()}
    for mode, result in results.items():
        report.nothing_failed(result, ", " + mode)
        report.at_least("steps that went on elsewhere, " + mode, result.client["hedges_won"], 1)
        report.at_least("times that it was left, " + mode, result.client["ejections"], 1)
        report.figures["latency_ms, " + mode] = result.latency_ms
        report.at_most("p99 in deadlines, " + mode, result.latency_ms["p99"] / deadline_ms, 0.25, timing=True)
    return report


def worker_flipped(size, checkpoint):
    """Bits of a replica's rows are turned on their way to a worker that has them summed."""
    report = Report("worker_flipped")
    with FaultCluster(checkpoint, servers=2, replicas=2, workers=1, proxied=("t0",),
                      worker_args=["--crc32c", "--admin", "127.0.0.1:0"]) as running:
        proxy = running.proxies["t0"]
        load = running.load_steps(*STEPS, rate=RATE, deadline_ms=size.deadline_ms).await_start()
        proxy.ask("flip 1")
        load.go_on(size.fault_seconds)
        proxy.ask("clear")
        load.go_on(size.calm_seconds)
        report.nothing_failed(load.end())
        report.at_least("bits turned", proxy.stats()["flips"], 1)
        metrics = admin.get(admin.address(running.workers["w0"]), "/metrics")[1]
        report.at_least("corrupt replies seen",
                        admin.metric(metrics, "engram_client_calls_ended_total", outcome="corrupt"), 1)
    return report

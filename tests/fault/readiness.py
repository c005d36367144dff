"""Workers whose tables are lost, and come back."""
import time

import grpc

import admin
import health
from fault_cluster import FaultCluster
from outages import UNAVAILABLE_CODES
from processes import START_SECONDS
from report import Report

STEPS = ("--tokens", "1x5,9x1", "--mode", "forward")
RATE = 30
READY, UNREADY = 200, 503
LOST_SECONDS, BACK_SECONDS = 5, 10
# A server that is only silent is found out by the pings of its connection.
SILENT_SECONDS = 20
REASON = "partitions have no ready server"


def worker_unready(size, checkpoint):
    """R = 1: a worker whose tables are lost is not ready, and ready again by itself once they are back."""
    report = Report("worker_unready")
    with FaultCluster(checkpoint, servers=2, replicas=1, workers=1,
                      worker_args=["--admin", "127.0.0.1:0"]) as running:
        worker = Readiness(report, running)
        worker.check("with its tables", READY, 1)
        load = running.load_steps(*STEPS, rate=RATE, deadline_ms=size.deadline_ms).await_start()
        running.kill("t1")
        worker.check("without t1", UNREADY, LOST_SECONDS, REASON)
        load.await_failure()
        running.start_server("t1").expect("ready")
        worker.check("with t1 back", READY, BACK_SECONDS)
        load.await_recovery(size.quiet_seconds)
        result = load.end()
        report.at_most("wrong answers", result.wrong, 0)
        report.at_most("failures of other kinds", len(result.codes - UNAVAILABLE_CODES), 0)
        report.notes += result.failures
        if size.tail_seconds:
            running.freeze("t0")
            worker.check("while t0 is stopped", UNREADY, SILENT_SECONDS, REASON)
            running.thaw("t0")
            worker.check("with t0 going on", READY, BACK_SECONDS)
        report.at_most("workers that have ended", running.workers["w0"].process.poll() is not None, 0)
    return report


class Readiness:
    """What a worker says of itself, to HTTP and to gRPC."""

    def __init__(self, report, running):
        self.report = report
        self.admin = admin.address(running.workers["w0"])
        self.address = running.address("w0")

    def check(self, when, status, seconds, reason=""):
        """It comes to this within so much time, and stays so for a moment."""
        start = time.monotonic()
        while admin.get(self.admin, "/readyz")[0] != status and time.monotonic() < start + START_SECONDS:
            time.sleep(0.02)
        self.report.at_most("s to answer %d %s" % (status, when), time.monotonic() - start, seconds)
        wanted = health.SERVING if status == READY else health.NOT_SERVING
        others, other_healths = 0, 0
        for _ in range(10):
            now, text = admin.get(self.admin, "/readyz")
            others += now != status or reason not in text
            other_healths += self._health() != wanted
            time.sleep(0.05)
        self.report.at_most("other answers " + when, others, 0)
        self.report.at_most("other answers of gRPC health " + when, other_healths, 0)

    def _health(self):
        with grpc.insecure_channel(self.address) as channel:
            return health.check(channel)

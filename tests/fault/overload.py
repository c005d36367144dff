"""More is asked of a server than it can do."""
import threading
import time

import grpc

import admin
import memory
from engram.v1 import table_pb2, table_pb2_grpc
from fault_cluster import FaultCluster
from report import Report

CAPACITY_ROWS_PER_S = 100000
LAYERS = 2
LARGE_ROWS = 1536  # of each layer
PROBE_SECONDS = 10
OVERLOAD = 5
GOODPUT_SHARE = 0.9
REFUSAL_MS = 5
GROWTH_MB = 64
# Admitted at once: half a second of work.
MAX_GATHERS = 16
SERVER_ARGS = ("--worker-threads", "1", "--max-inflight-gathers", str(MAX_GATHERS))


class Refusals:
    """A plain grpcio client that asks for much again and again, and how long refusals take."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.stub = table_pb2_grpc.TableServiceStub(self.channel)
        self.request = table_pb2.GatherRequest(
            layers=[table_pb2.LayerRows(layer_id=1, row_ids=list(range(LAYERS * LARGE_ROWS)))])
        self.answered_rows = 0
        self.rows_per_s = 0
        self.refused_ms = []
        self.others = set()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._ask)

    def __enter__(self):
        self.stub.GetTable(table_pb2.GetTableRequest(), timeout=PROBE_SECONDS, wait_for_ready=True)
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        self.thread.join()
        self.rows_per_s = self.answered_rows / (time.monotonic() - self.began)
        self.channel.close()

    def _ask(self):
        while not self.stop.wait(0.005):
            start = time.monotonic()
            try:
                self.stub.Gather(self.request, timeout=PROBE_SECONDS)
                self.answered_rows += LAYERS * LARGE_ROWS
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                    self.refused_ms.append(1000 * (time.monotonic() - start))
                elif error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                    self.others.add(str(error.code()))

    def quantile(self, share):
        return sorted(self.refused_ms)[int(share * (len(self.refused_ms) - 1))] if self.refused_ms else 0


def server_calls(running):
    """Code -> gathers that ended with it, at the server."""
    text = admin.get(admin.address(running.servers["t0"]), "/metrics")[1]
    return {code: admin.metric(text, "engram_table_calls_total", method="GatherStream", code=code)
            for code in ("OK", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED")}


class Flood:
    """Two clients that ask for `times` as much as the server can give."""

    def __init__(self, running, times, seconds, deadline_ms):
        rate = times * CAPACITY_ROWS_PER_S / (LAYERS * LARGE_ROWS)
        self.loads = [
            running.load("--rows", LARGE_ROWS, "--seed", seed, rate=rate / 2, deadline_ms=deadline_ms,
                         max_in_flight=256, warmup_seconds=deadline_ms / 1000, seconds=seconds)
            for seed in (1, 2)]
        self.results = None
        self.end_seconds = seconds + 60  # until it has ended for sure
        for load in self.loads:
            load.await_start()

    def result(self):
        self.results = [load.result(self.end_seconds) for load in self.loads]
        return self

    @property
    def rows_per_s(self):
        return sum(result.units_per_second for result in self.results)

    @property
    def other_codes(self):
        return set().union(*(result.codes for result in self.results)) - {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}


def overload(size, checkpoint):
    """A server of a capped capacity is asked for five times as much as it can give."""
    report = Report("overload")
    with FaultCluster(checkpoint, servers=1, faulty=("t0",), server_args=SERVER_ARGS) as running:
        running.servers["t0"].ask("capacity %d" % CAPACITY_ROWS_PER_S)
        best = 0
        if size.tail_seconds:
            best = max(Flood(running, times, size.tail_seconds, size.deadline_ms).result().rows_per_s
                       for times in (0.8, 1))
        flood = Flood(running, OVERLOAD, max(size.fault_seconds, size.tail_seconds), size.deadline_ms)
        before = server_calls(running)
        before_mb = memory.resident_mb(running.pid("t0"))
        small = running.load("--rows", "8", rate=20, deadline_ms=10000)
        with Refusals(running.address("t0")) as refusals:
            flood.result()
        after = server_calls(running)
        others = small.end()
        after_mb = running.peak_mb("t0")
    report.nothing_failed(others, " of small gathers beside it")
    report.at_most("wrong answers", sum(result.wrong for result in flood.results), 0)
    report.at_most("failures of other kinds", len(flood.other_codes), 0)
    report.at_most("refusals of other kinds", len(refusals.others), 0)
    report.at_least("refusals", len(refusals.refused_ms), 1)
    report.at_most("MB that the server grew", after_mb - before_mb, GROWTH_MB)
    if best:
        report.at_least("goodput of the maximum", (flood.rows_per_s + refusals.rows_per_s) / best, GOODPUT_SHARE,
                        timing=True)
    report.at_most("ms until a refusal, p50", refusals.quantile(0.5), REFUSAL_MS, timing=True)
    report.figures.update({"server calls " + code: after[code] - before[code] for code in after})
    report.figures.update(best_rows_per_s=best, overloaded_rows_per_s=flood.rows_per_s,
                          refusals=len(refusals.refused_ms), refusal_p99_ms=refusals.quantile(0.99),
                          small_ms=others.latency_ms, overloaded_ms=flood.results[0].latency_ms)
    report.notes += [note for result in flood.results for note in result.failures]
    return report

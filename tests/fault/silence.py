"""Addresses that swallow packets: no answer, no refusal, ever."""
import contextlib
import socket

from fault_cluster import FaultCluster
from outages import ALONE_DEADLINE_MS, ALONE_RATE, ROWS, check_outage
from report import Report


class Swallower:
    """A listening socket of 127.0.0.1 whose backlog is full and that never accepts: the kernel drops
    what comes. `port` 0 takes a free one."""

    def __init__(self, port=0):
        self.port = port
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        listener = self.stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(0)
        where = listener.getsockname()
        self.address = "%s:%d" % where
        for _ in range(8):
            filler = self.stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(where)
        try:
            socket.create_connection(where, timeout=0.2).close()
        except TimeoutError:
            return self
        self.stack.close()
        raise AssertionError("%s accepts connections" % self.address)

    def __exit__(self, *unused):
        self.stack.close()


class SwallowedCluster(FaultCluster):
    """Clients look for the last server where packets are swallowed."""

    def __init__(self, checkpoint, swallower, **rest):
        super().__init__(checkpoint, **rest)
        self.swallower = swallower

    def client_address(self, name):
        return self.swallower.address if name == self.names[-1] else super().client_address(name)


def swallowed(size, checkpoint):
    """R = 2: an address has never answered, and nobody misses it."""
    report = Report("swallowed")
    with Swallower() as swallower, SwallowedCluster(checkpoint, swallower, servers=3, replicas=2) as running:
        load = running.load(*ROWS, rate=size.rate, deadline_ms=size.deadline_ms).await_start()
        load.go_on(size.fault_seconds)
        report.nothing_failed(load.end())
    return report


def swallowed_alone(size, checkpoint):
    """R = 1: a server is lost, and its address swallows packets from then on."""
    report = Report("swallowed_alone")
    with FaultCluster(checkpoint, servers=2, replicas=1, proxied=("t1",)) as running:
        load = running.load(*ROWS, rate=ALONE_RATE, deadline_ms=ALONE_DEADLINE_MS).await_start()
        proxy = running.proxies["t1"]
        proxy.stop()
        with Swallower(int(proxy.address.split(":")[1])):
            load.await_failure()
            load.go_on(size.calm_seconds)
            check_outage(report, load.end())
    return report


def silenced(size, checkpoint):
    """R = 1: a server that has answered falls silent, and later speaks again."""
    report = Report("silenced")
    with FaultCluster(checkpoint, servers=2, replicas=1, proxied=("t1",)) as running:
        load = running.load(*ROWS, rate=ALONE_RATE, deadline_ms=ALONE_DEADLINE_MS).await_start()
        running.proxies["t1"].ask("stall on")
        load.await_failure()
        load.go_on(size.calm_seconds)
        running.proxies["t1"].ask("clear")
        load.await_recovery(size.quiet_seconds)
        check_outage(report, load.end())
    return report

"""Clusters to do harm to: table servers behind TCP proxies, or over a faulty tier."""
import os
import signal

import cluster
import memory
from load import Load
from processes import BIN
from proxy import Proxy


class FaultCluster(cluster.Cluster):
    """Table servers t0, t1, ...; clients reach those in `proxied` through a proxy, those in `faulty`
    take the commands of faulty_table_server/tier_faults.h (`servers[name].ask`)."""

    def __init__(self, checkpoint, *, proxied=(), faulty=(), server_args=(), **rest):
        super().__init__(checkpoint, server_args=["--admin", "127.0.0.1:0", "--drain-seconds", "0.5", *server_args],
                         **rest)
        self.proxied, self.faulty = proxied, faulty
        self.proxies = {}
        self.loads = []

    def __enter__(self):
        try:
            for name in self.proxied:
                self.proxies[name] = Proxy(self.address(name), self.directory / ("proxy-%s.log" % name))
        except BaseException:
            self.__exit__()
            raise
        return super().__enter__()

    def __exit__(self, *unused):
        for process in [*self.loads, *self.proxies.values()]:
            process.stop()
        super().__exit__()

    def server_binary(self, name):
        return BIN / ("engram-faulty-table-server" if name in self.faulty else "engram-table-server")

    def client_address(self, name):
        return self.proxies[name].address if name in self.proxies else self.address(name)

    def load(self, *args, max_in_flight=1024, **schedule):
        """Gathers of the cluster's tables. So many in flight that a hiccup of the machine is no failure."""
        return self._start_load(["--tables", self.tables, "--checkpoint", self.checkpoint], args,
                                dict(schedule, max_in_flight=max_in_flight))

    def load_steps(self, *args, **schedule):
        return self._start_load(["--workers", self.worker_addresses], args, schedule)

    def _start_load(self, target, args, schedule):
        load = Load(self.directory, target, *args, **schedule)
        self.loads.append(load)
        return load

    def kill(self, name):
        """SIGKILL; `start_server` or `start_worker` brings it back at its address."""
        (self.servers.get(name) or self.workers[name]).stop()

    def freeze(self, name):
        os.kill(self.pid(name), signal.SIGSTOP)

    def thaw(self, name):
        os.kill(self.pid(name), signal.SIGCONT)

    def pid(self, name):
        return (self.servers.get(name) or self.workers[name]).process.pid

    def peak_mb(self, name):
        return memory.peak_mb(self.pid(name))

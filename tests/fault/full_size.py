"""V4.1's true layout, 11,720 partitions whose rows are computed: what a change costs servers and a client that watches."""
import os
import time

import memory
from elastic_cluster import ElasticCluster
from member_lists import FileMembers
from report import Report

SYNTHETIC_SEED = 1
REPLICAS = 2
SETTLE_SECONDS = 120
POLL_SECONDS = 0.5  # each look asks all servers for all they hold
CALM_SECONDS = 10
# Of one client, with one call of 24 rows a second.
WATCHING_CPU, WATCHING_MB = 0.02, 100


class SyntheticCluster(ElasticCluster):
    """Servers of V4.1's layout without its bytes."""

    def server_command(self, name):
        command = super().server_command(name)
        at = command.index("--checkpoint")
        return command[:at] + ["--source", "synthetic:%d" % SYNTHETIC_SEED, "--preset", "v41"] + command[at + 2:]

    def watcher(self):
        return self._start_load(["--tables", self.tables, "--synthetic", SYNTHETIC_SEED], ["--rows", "24x1"],
                                {"rate": 1, "deadline_ms": 10000})


def full_size(size, checkpoint):
    """16 servers, 11,720 partitions, R = 2: one leaves, one comes; how long that takes, what a client pays for it."""
    report = Report("full_size")
    with SyntheticCluster(checkpoint, FileMembers, servers=size.many_servers, replicas=REPLICAS) as running:
        running.await_settled(SETTLE_SECONDS)
        client = running.watcher().await_start()
        _check_watching(report, client.process.pid)
        gone = running.listed[-1]
        _change(report, running, client, "one leaves", lambda: running.publish(*running.listed[:-1]))
        running.servers[gone].stop()
        _change(report, running, client, "one joins", lambda: running.add("newcomer"))
        report.nothing_failed(client.end())
    return report


def _check_watching(report, pid):
    before = _cpu_seconds(pid)
    time.sleep(CALM_SECONDS)
    report.at_most("cores that a client takes to watch", (_cpu_seconds(pid) - before) / CALM_SECONDS, WATCHING_CPU,
                   timing=True)
    report.at_most("MB that it has then", memory.resident_mb(pid), WATCHING_MB)


def _change(report, running, client, what, change):
    client_cpu = _cpu_seconds(client.process.pid)
    server_cpu = {pid: _cpu_seconds(pid) for pid in map(running.pid, running.listed)}
    began = time.monotonic()
    change()
    running.await_settled(SETTLE_SECONDS, poll_seconds=POLL_SECONDS)
    report.figures.update({
        "s until routing is stable, " + what: round(time.monotonic() - began, 2),
        "CPU s of the client, " + what: round(_cpu_seconds(client.process.pid) - client_cpu, 3),
        "MB of the client, " + what: round(memory.peak_mb(client.process.pid), 1),
        "CPU s of each server, looks included, " + what:
            round(sum(_cpu_seconds(pid) - cpu for pid, cpu in server_cpu.items()) / len(server_cpu), 2)})


def _cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""A network that goes down and comes back, in a network namespace of its own.

The scenarios run in a child of this process, in new user and network namespaces: the machine's
own network is not touched, and everything is gone with the child. One table server lives in a
namespace of its own behind a pair of virtual links, one end of which is taken down.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import sizes
from fault_cluster import FaultCluster
from outages import ALONE_DEADLINE_MS, ALONE_RATE, ROWS, check_outage
from report import Report

NEAR, FAR = "10.77.0.1", "10.77.0.2"
NAMESPACES = ["unshare", "--user", "--map-root-user", "--net"]


def why_not():
    """Why there can be no such network here; empty: there can."""
    probe = [*NAMESPACES, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"]
    try:
        result = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    except FileNotFoundError as error:
        return "no network namespace: %s" % error
    return "" if result.returncode == 0 else "no network namespace: %s" % result.stderr.strip()


def cut(size, checkpoint):
    """R = 2: the network of one server goes down and comes back."""
    return _run_in_namespace("cut", size, checkpoint)


def cut_alone(size, checkpoint):
    """R = 1: the same; deadlines hold, and the rows come back with the network."""
    return _run_in_namespace("cut_alone", size, checkpoint)


def _run_in_namespace(name, size, checkpoint):
    report = Report(name)
    report.skipped = why_not() or None
    if report.skipped:
        return report
    size_name = next(key for key, value in vars(sizes).items() if value is size)
    child = subprocess.run(["setpriv", "--pdeathsig", "KILL", *NAMESPACES, sys.executable, __file__, name, size_name,
                            str(checkpoint)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
    if child.returncode != 0:
        raise AssertionError("%s ended with %d" % (name, child.returncode))
    report.read_json(json.loads(child.stdout))
    return report


class Network:
    """The links, in the child. The far end lives in the namespace of a process that only keeps it."""

    def __enter__(self):
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c",
                                        "echo here; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.inside = ["nsenter", "--target", str(self.keeper.pid), "--net"]
        try:
            assert self.keeper.stdout.readline() == "here\n", "no namespace for the far end"
            ip("link", "set", "lo", "up")
            ip("link", "add", "near", "type", "veth", "peer", "name", "far")
            ip("link", "set", "far", "netns", str(self.keeper.pid))
            ip("addr", "add", NEAR + "/24", "dev", "near")
            ip("link", "set", "near", "up")
            for words in (("link", "set", "lo", "up"), ("addr", "add", FAR + "/24", "dev", "far"),
                          ("link", "set", "far", "up")):
                ip(*words, inside=self.inside)
            # Otherwise the kernel would soon say "no route to host" for a silent neighbour.
            address = ip("-json", "link", "show", "far", inside=self.inside)
            ip("neigh", "replace", FAR, "lladdr", json.loads(address)[0]["address"], "dev", "near")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.keeper.kill()
        self.keeper.wait()
        self.keeper.stdin.close()
        self.keeper.stdout.close()

    def down(self):
        """What is sent to the far end is lost."""
        ip("link", "set", "far", "down", inside=self.inside)

    def up(self):
        ip("link", "set", "far", "up", inside=self.inside)


def ip(*words, inside=()):
    return subprocess.run([*inside, "ip", *words], stdin=subprocess.DEVNULL, check=True, timeout=30,
                          stdout=subprocess.PIPE, text=True).stdout


class FarCluster(FaultCluster):
    """The last server listens at the far end."""

    def __init__(self, checkpoint, network, **rest):
        super().__init__(checkpoint, **rest)
        self.network = network
        self.far_name = self.names[-1]

    def server_command(self, name):
        command = super().server_command(name)
        if name != self.far_name:
            return command
        command[command.index("--listen") + 1] = FAR + ":0"
        return [*self.network.inside, *command]

    def client_address(self, name):
        if name != self.far_name:
            return super().client_address(name)
        said = "listening on "
        return next(line[len(said):] for line in self.servers[name].seen if line.startswith(said))


def cut_here(size, checkpoint):
    report = Report("cut")
    with Network() as network, FarCluster(checkpoint, network, servers=3, replicas=2) as running:
        load = running.load(*ROWS, rate=size.rate, deadline_ms=size.deadline_ms).await_start()
        network.down()
        load.go_on(size.fault_seconds)
        network.up()
        load.go_on(size.calm_seconds)
        report.nothing_failed(load.end())
    return report


def cut_alone_here(size, checkpoint):
    report = Report("cut_alone")
    with Network() as network, FarCluster(checkpoint, network, servers=2, replicas=1) as running:
        load = running.load(*ROWS, rate=ALONE_RATE, deadline_ms=ALONE_DEADLINE_MS).await_start()
        network.down()
        load.await_failure()
        load.go_on(size.calm_seconds)
        network.up()
        load.await_recovery(size.quiet_seconds)
        check_outage(report, load.end())
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=("cut", "cut_alone"))
    parser.add_argument("size")
    parser.add_argument("checkpoint", type=pathlib.Path)
    arguments = parser.parse_args()
    scenario = {"cut": cut_here, "cut_alone": cut_alone_here}[arguments.name]
    print(json.dumps(scenario(getattr(sizes, arguments.size), arguments.checkpoint).as_json()))

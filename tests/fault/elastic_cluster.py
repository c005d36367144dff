"""Clusters that grow and shrink while they serve."""
import json
import time

import cluster_state
from cluster import engramctl
from fault_cluster import FaultCluster
from member_lists import CLIENTS
from processes import START_SECONDS

# So that what takes seconds to minutes by default takes a moment.
HASTE = {"--stability-seconds": 0.3, "--announce-linger-seconds": 0.3, "--answer-linger-seconds": 0.3,
         "--drain-seconds": 0.3}
ROWS = ("--rows", "24x9,600x1")
POLL_SECONDS = 0.05
LOAD_SECONDS = 180  # 1 GB at the pace of moves; also the second copies of a cluster that starts


class ElasticCluster(FaultCluster):
    """Servers are members once `add` or `publish` says so. `kind`: of member_lists. `flags`: of servers, by name."""

    def __init__(self, checkpoint, kind, servers, replicas, flags=()):
        super().__init__(checkpoint, servers=servers, replicas=replicas)
        base = dict(zip(self.server_args[::2], self.server_args[1::2]))
        flags = {**base, "--expected-servers": servers, **HASTE, **dict(flags)}
        self.server_args = [word for flag in flags.items() for word in flag]
        self.members = kind(self.directory)
        self.listening = {}  # name -> address
        self.listed = []     # names, as last published

    def __enter__(self):
        try:
            self.members.__enter__()
            self.add(*self.names)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        super().__exit__()
        self.members.__exit__()

    @property
    def tables(self):
        return self.members.spec(CLIENTS)

    def server_command(self, name):
        command = super().server_command(name)
        command[command.index("--members") + 1] = self.members.spec(name)
        if self.members.LISTEN:
            command[command.index("--listen") + 1] = self.members.LISTEN
        return command

    def checked_load(self, size, **rest):
        return self.load(*ROWS, rate=size.rate, deadline_ms=size.deadline_ms, **rest)

    def start_server(self, name, *extra):
        """Until it listens."""
        process = super().start_server(name, *extra)
        self.listening[name] = process.expect("listening on ")
        return process

    def publish(self, *names):
        """These are the members now."""
        self.listed = list(names)
        self.members.publish(self._addresses(names))

    def show(self, reader, *names):
        """These are what one reader of a file sees now."""
        self.members.show(reader, self._addresses(names))

    def _addresses(self, names):
        return {name: self.listening[name] for name in names}

    def add(self, *names):
        """Starts servers that join, until they are ready."""
        for name in names:
            self.start_server(name)
        self.publish(*self.listed, *names)
        for name in names:
            self.servers[name].expect("ready", LOAD_SECONDS)

    def start_again(self, name):
        """Brings a member back that has ended, until it is ready."""
        self.start_server(name)
        self.publish(*self.listed)
        self.servers[name].expect("ready", LOAD_SECONDS)

    def end(self, name, report):
        """SIGTERM, and that it ends well."""
        self.servers[name].terminate()
        report.at_most("exit code of %s, which was told to end" % name, abs(self.servers[name].wait()), 0)

    def state(self, name):
        return cluster_state.ask(self.listening[name])

    def states(self):
        return {name: self.state(name) for name in self.listed}

    def await_state(self, name, condition, seconds=START_SECONDS):
        """Until what the server says of itself is so."""
        deadline = time.monotonic() + seconds
        while not condition(state := self.state(name)):
            if time.monotonic() > deadline:
                raise AssertionError("%s does not get there in %s s: %s" % (name, seconds, state))
            time.sleep(POLL_SECONDS)
        return state

    def await_settled(self, seconds=START_SECONDS, poll_seconds=POLL_SECONDS):
        """Until the members agree on who they are and each holds just what it owns. Returns their states."""
        deadline = time.monotonic() + seconds
        while (why_not := cluster_state.why_not_settled(states := self.states(), self.replicas)):
            if time.monotonic() > deadline:
                raise AssertionError("not settled in %s s: %s" % (seconds, why_not))
            time.sleep(poll_seconds)
        return states

    def plan(self, before, after):
        """What `engramctl plan` says of a change from members to others."""
        def static(names):
            return "static:" + ",".join("%s=%s:1" % (name, name) for name in names)
        return json.loads(engramctl("plan", "--checkpoint", self.checkpoint, "--from", static(before),
                                    "--from-replicas", self.replicas, "--members", static(after), "--json").stdout)

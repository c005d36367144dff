"""peak_memory_vs_budget: a table server with a local store and less memory than its table needs, under load."""
import json
import pathlib
import threading

import made_checkpoint
import memory_group

NAME = "memory"
WHAT = "what a server with --host-mb and --cache-mb takes under load"
TABLE_BYTES, QUICK_TABLE_BYTES = 8e9, 1e9
MEMORY_SHARE = 8
MINUTES, QUICK_MINUTES = 10, 1
RATE = 20  # gathers a second, of both layers
ROWS = "24x70,1536x25,6144x5"
LOOK_SECONDS = 0.1


def measure(servers, arguments, say):
    reason = memory_group.why_not()
    if reason is not None:
        say("left out: %s" % reason)
        return {}, {}, {"skipped": reason}
    size = QUICK_TABLE_BYTES if arguments.quick else TABLE_BYTES
    checkpoint, table_bytes = made_checkpoint.make(servers, arguments, size, say, 1.06 * size)
    half_mb = int(size / MEMORY_SHARE / 2 / 1e6)
    minutes = arguments.minutes or (QUICK_MINUTES if arguments.quick else MINUTES)
    with memory_group.MemoryGroup("engram-bench-memory") as group:
        loaded = run(servers, arguments, group, checkpoint, (half_mb, half_mb), minutes, say)
        bare = run(servers, arguments, group, checkpoint, (0, 0), None, say)["ready"]["anonymous"]
    budget = 2 * half_mb * 1e6 + bare
    peak = loaded["peak"]["anonymous"]
    return ({"peak_memory_vs_budget": peak / budget},
            {"peak_memory_vs_budget":
             "most memory of a table server's own at any moment (looked at every %.1f s from its start, which fills "
             "its store, on), %g minutes of gathers with Zipf 1.0, over --host-mb and --cache-mb and what it takes "
             "when it is ready with 0 of both" % (LOOK_SECONDS, minutes)},
            {"table_bytes": table_bytes, "host_mb": half_mb, "cache_mb": half_mb, "bare_bytes": bare,
             "budget_bytes": budget, "minutes": minutes, "rate": RATE, "rows": ROWS,
             "under_load": loaded,
             "note": "files: page cache, of the checkpoint that fills the store or of the program; the store's rows "
                     "pass it by"})


def run(servers, arguments, group, checkpoint, megabytes, minutes, say):
    """Of one server: what it takes when it is ready, at most, and how gathers went."""
    result = {}
    with Watching(group) as watching:
        server = servers.start(
            "engram", arguments.bin / "engram-table-server", "--checkpoint", checkpoint, "--listen", "127.0.0.1:0",
            "--server-name", "a", "--drain-seconds", 0, "--store", "flat:%s" % (servers.directory / "store"),
            "--host-mb", megabytes[0], "--cache-mb", megabytes[1], enter=group.enter)
        result["ready"] = group.usage()
        if minutes is not None:
            say("%g minutes of gathers" % minutes)
            path = servers.directory / "load.json"
            servers.run(arguments.bin / "engramctl", "load", "--tables", server.address, "--checkpoint", checkpoint,
                        "--rows", ROWS, "--zipf", 1, "--rate", RATE, "--check", "sample:64", "--deadline-ms", 30000,
                        "--duration-seconds", 60 * minutes, "--json", path, seconds=60 * minutes + 300)
            result["load"] = json.loads(path.read_text())
            del result["load"]["options"]["checkpoint"]  # a path that is gone at the end
            result["after_load"] = group.usage()
        result["resident"] = resident(server.pid)
        servers.stop(server)
    return {"peak": watching.peak, **result}


def resident(pid):
    lines = pathlib.Path("/proc/%d/status" % pid).read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("VmHWM", "RssAnon", "RssFile")))
    return {name: int(value.split()[0]) * 1024 for name, value in fields.items()}


class Watching:
    """The most that a group has of each kind of memory while it is watched."""

    def __init__(self, group):
        self.group = group
        self.peak = {}
        self.error = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *unused):
        self.ended.set()
        self.thread.join()
        if self.error is not None and kind is None:
            raise self.error

    def _watch(self):
        try:
            while not self.ended.wait(LOOK_SECONDS):
                usage = self.group.usage()
                usage["anonymous_and_kernel"] = usage["anonymous"] + usage["kernel"]
                self.peak = {kind: max(size, self.peak.get(kind, 0)) for kind, size in usage.items()}
        except OSError as error:  # a peak that was not looked for to the end is none
            self.error = error

"""Memory control groups of a benchmark's own, of version 1 or 2: what a process takes, and no more than it may."""
import os
import pathlib
import time

REMOVE_SECONDS = 5


class NoMemoryGroups(Exception):
    """Says why there are none here."""


class MemoryGroup:
    """A group below this process's own. A context manager: its end removes it, whose processes have to be gone."""

    def __init__(self, name, limit_bytes=None):
        self.limit_bytes = limit_bytes
        self.version, parent = _find_parent()
        self.path = parent / ("%s-%d" % (name, os.getpid()))

    def __enter__(self):
        try:
            self.path.mkdir()
        except OSError as error:
            raise NoMemoryGroups("no control group can be made in %s: %s" % (self.path.parent, error)) from None
        if self.limit_bytes is not None:
            self._limit()
        return self

    def __exit__(self, *unused):
        deadline = time.monotonic() + REMOVE_SECONDS
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:  # a process that has just ended counts for a moment
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def enter(self):
        """In the child, before it becomes the program."""
        (self.path / "cgroup.procs").write_text("0")

    def usage(self):
        """Bytes now: of the processes themselves, of files in the page cache, of the kernel for them."""
        stat = _numbers(self.path / "memory.stat")
        if self.version == 1:
            kernel = self.path / "memory.kmem.usage_in_bytes"
            return {"anonymous": stat["total_rss"], "files": stat["total_cache"],
                    "kernel": int(kernel.read_text()) if kernel.exists() else 0}
        return {"anonymous": stat["anon"], "files": stat["file"],
                "kernel": stat.get("kernel", stat.get("slab", 0) + stat.get("kernel_stack", 0))}

    def oom_kills(self):
        return _numbers(self.path / ("memory.oom_control" if self.version == 1 else "memory.events")).get("oom_kill", 0)

    def _limit(self):
        names = {1: ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"], 2: ["memory.max"]}[self.version]
        for name in names:
            if (self.path / name).exists():
                (self.path / name).write_text(str(self.limit_bytes))
        if self.version == 2 and (self.path / "memory.swap.max").exists():
            (self.path / "memory.swap.max").write_text("0")


def why_not():
    """None where groups can be made and limited, else why they cannot."""
    try:
        with MemoryGroup("engram-bench-probe", 1 << 30):
            return None
    except (NoMemoryGroups, OSError) as error:
        return str(error)


def _find_parent():
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    for version, mount, controllers in _mounts():
        if version == 1 and "memory" in controllers:
            path = next((p for names, p in own.items() if "memory" in names.split(",")), "/")
            group = mount / path.lstrip("/")
            return 1, group if group.is_dir() else mount
        if version == 2 and "memory" in (mount / "cgroup.controllers").read_text().split():
            # Only a group that hands the controller on can have limited groups below it.
            group = mount / own.get("", "/").lstrip("/")
            for candidate in (group, *group.parents):
                control = candidate / "cgroup.subtree_control"
                if control.exists() and "memory" in control.read_text().split():
                    return 2, candidate
                if candidate == mount:
                    break
            raise NoMemoryGroups("no control group from %s upwards has memory in its cgroup.subtree_control" % group)
    raise NoMemoryGroups("no control groups with the memory controller are mounted")


def _mounts():
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options = line.split()[:4]
        if kind == "cgroup":
            yield 1, pathlib.Path(mount), options.split(",")
        elif kind == "cgroup2":
            yield 2, pathlib.Path(mount), []


def _numbers(path):
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}

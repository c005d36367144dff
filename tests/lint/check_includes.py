#!/usr/bin/env python3
"""Holds the dependency rules: who may include whom. Prints every break, exits 1 if any.

A rule names a folder and the folders it may include beside itself; the longest matching
folder wins. What is not named is forbidden.
"""
import pathlib
import re
import sys

# folder -> (may include, may use gRPC)
RULES = {
    "core/base": ([], False),
    "core/model": (["core/base"], False),
    "core/cache": (["core/base"], False),
    "core/gpu": (["core/base", "core/model"], False),
    "core/placement": (["core/base"], False),
    "core/wire": (["core/base", "core/model", "proto"], False),
    "core/membership": (["core/base", "core/rpc/address.h"], False),
    "core/http": (["core/base"], False),
    "core/rpc": (["core/base", "core/wire", "proto"], True),
    "table_server": (["core", "proto"], True),
    "table_server/store": (["core", "table_server/tier/row_fetch.h"], False),
    "table_server/tier": (["core", "table_server/store"], False),
    "table_server/gather": (["core", "table_server"], False),
    "table_server/heat": (["core"], False),
    "table_server/partitions": (["core"], False),
    "table_server/membership": (["core"], False),
    "table_server/peers": (["core", "proto", "table_server/loading"], True),
    "table_server/loading": (["core", "table_server"], False),
    "table_server/rebalance": (["core", "table_server"], False),
    "engram_client": (["core", "proto"], True),
    "engram_client/plan": (["core", "engram_client"], False),
    "engram_client/routing": (["core", "engram_client"], False),
    # A tool, not the library: `engramctl hash` needs the n-gram hash, and what import fills and
    # verify reads is a server's local store, by the code that servers fill and read it with.
    "engram_client/ctl": (["core", "proto", "engram_client", "compute/hash", "table_server/loading",
                           "table_server/store"], True),
    "compute/hash": (["core/base", "core/model", "core/gpu"], False),
    # Rows are decoded into the order in which the projection reads them.
    "compute/dequant": (["core/base", "core/model", "core/gpu",
                         "compute/project/fragment_layout.h"], False),
    "compute/project": (["core/base", "core/model", "core/gpu"], False),
    "compute/gate": (["core/base", "core/model", "core/gpu"], False),
    "compute/block": (["core/base", "core/model", "core/gpu", "compute/hash", "compute/dequant",
                       "compute/project", "compute/gate"], False),
    "compute/worker": (["core", "proto", "engram_client", "compute"], True),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.M)
PROTO_HEADER = re.compile(r"^(engram/v1|google/rpc)/")
OWN_HEADER = re.compile(r"^(core|table_server|engram_client|compute|tests)/")
GRPC_HEADER = re.compile(r"^(grpc|grpcpp|grpc\+\+)/")


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def rule_of(path):
    folders = [f for f in RULES if inside(path, f)]
    return max(folders, key=len) if folders else None


def check(root):
    breaks = []
    for source in sorted(p for top in ("core", "table_server", "engram_client", "compute")
                         for p in (root / top).rglob("*") if p.suffix in (".h", ".cc", ".cu", ".cuh")):
        path = source.relative_to(root).as_posix()
        folder = rule_of(path)
        if folder is None:
            breaks.append("%s: no rule for this folder in tests/lint/check_includes.py" % path)
            continue
        allowed, grpc = RULES[folder]
        for name in INCLUDE.findall(source.read_text()):
            if GRPC_HEADER.match(name) or name.endswith(".grpc.pb.h"):
                if not grpc:
                    breaks.append("%s: %s may not use gRPC (%s)" % (path, folder, name))
            elif PROTO_HEADER.match(name):
                if "proto" not in allowed and "core" not in allowed:
                    breaks.append("%s: %s may not use the wire messages (%s)" % (path, folder, name))
            elif OWN_HEADER.match(name) and not inside(name, folder) and not any(inside(name, a) for a in allowed):
                breaks.append("%s: %s may not include %s" % (path, folder, name))
    return breaks


def self_test():
    """The check itself must be able to fail."""
    assert rule_of("engram_client/ctl/main.cc") == "engram_client/ctl"
    assert rule_of("core/unknown/x.h") is None
    assert not inside("compute/hashing/x.h", "compute/hash")


def main():
    self_test()
    breaks = check(pathlib.Path(sys.argv[1]))
    for line in breaks:
        print(line)
    sys.exit(1 if breaks else 0)


if __name__ == "__main__":
    main()

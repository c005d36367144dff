#!/usr/bin/env python3
"""The gather benchmark; tests/bench/run gather builds what it needs and starts it.

Makes a checkpoint, starts a server for every contestant, lets the load driver
(engram-bench-gather) take them in turn, and writes medians, ratios and plots.
"""
import argparse
import itertools
import json
import pathlib
import signal
import sys

import bench_plots
import bench_report
import bench_servers
import run_description

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTESTANTS = ("engram_1", "t1", "t2", "redis", "memcached", "rocksdb", "in_process", "easy_grpc", "tcp_bytes",
               "empty_stream", "empty_unary")
# Apart from the others: two dozen servers that look after each other, even idle, are 7 % of two cores.
FAN_OUT = {"fan_out_1": 1, "fan_out_4": 4, "fan_out_16": 16}  # servers
ROWS_PER_VOCAB = 48  # two layers of 24 columns
ROW_BYTES = 264
# Bytes that redis and memcached use for a row, with room.
STORE_BYTES_PER_ROW = 640

FULL = dict(vocab_size=85000, rounds=5, duration_ms=400, rows=[24, 48, 1536, 6144, 49152], in_flight=[1, 4, 16],
            ids=["uniform", "zipf_1.0"])
QUICK = dict(FULL, vocab_size=25000, duration_ms=100, in_flight=[1, 4], ids=["uniform"])


def parse_arguments():
    def comma_list(kind):
        return lambda text: [kind(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(prog="tests/bench/run gather", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, type=pathlib.Path, metavar="FILE", help="where the result goes")
    parser.add_argument("--plots", type=pathlib.Path, metavar="DIR", help="also write SVG plots")
    parser.add_argument("--quick", action="store_true", help="a smaller table, shorter turns, fewer cells")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help=argparse.SUPPRESS)
    narrow = parser.add_argument_group("to look closer at a part (ratios that need more are left out)")
    narrow.add_argument("--only", type=comma_list(str), default=[*CONTESTANTS, *FAN_OUT], metavar="NAMES",
                        help="a comma-separated list of " + ", ".join([*CONTESTANTS, *FAN_OUT]))
    narrow.add_argument("--rows", type=comma_list(int), metavar="LIST", help="rows a call")
    narrow.add_argument("--in-flight", type=comma_list(int), metavar="LIST", help="gathers at a time")
    narrow.add_argument("--ids", type=comma_list(str), metavar="LIST", help="uniform, zipf_1.0")
    narrow.add_argument("--rounds", type=int, help="at least 5 for a result that counts")
    narrow.add_argument("--duration-ms", type=int, help="of one contestant's turn")
    narrow.add_argument("--vocab-size", type=int, help="48 times as many rows of 264 bytes")
    narrow.add_argument("--checkpoint", type=pathlib.Path, metavar="DIR",
                        help="one of `engramctl make-checkpoint --preset v41-mini`, instead of a new one")
    arguments = parser.parse_args()
    for key, value in (QUICK if arguments.quick else FULL).items():
        if getattr(arguments, key) is None:
            setattr(arguments, key, value)
    unknown = set(arguments.only) - set(CONTESTANTS) - set(FAN_OUT)
    if unknown:
        parser.error("no contestant is named " + ", ".join(sorted(unknown)))
    return arguments


def make_checkpoint(servers, arguments):
    if arguments.checkpoint:
        return arguments.checkpoint
    checkpoint = servers.directory / "checkpoint"
    servers.run(arguments.bin / "engramctl", "make-checkpoint", "--preset", "v41-mini", "--vocab-size",
                arguments.vocab_size, "--seed", 1, "--out", checkpoint, seconds=1200)
    return checkpoint


def say(what):
    print("bench: starting " + what, file=sys.stderr)


def contestant(servers, name, kind, started, **only):
    return {"name": name, "kind": kind, "addresses": [server.address for server in started],
            "processes": [server.pid for server in started], "scratch_dir": str(servers.directory),
            "only_ids": [], "only_rows": [], "only_in_flight": [], **only}


def start_cluster(servers, arguments, checkpoint, size):
    names = ["s%d" % i for i in range(size)]
    members = "static:" + ",".join(name + "=127.0.0.1:0" for name in names)
    return servers.start_all([
        ("engram-%d-%s" % (size, name),
         (arguments.bin / "engram-table-server", "--checkpoint", checkpoint, "--listen", "127.0.0.1:0",
          "--server-name", name, "--members", members, "--replicas", 1, "--drain-seconds", 0))
        for name in names])


def start_fan_out(servers, arguments, checkpoint, names):
    """Specifications for the driver, the servers running."""
    specs = []
    for name in names:
        say("table servers: %d" % FAN_OUT[name])
        specs.append(contestant(servers, name, "engram", start_cluster(servers, arguments, checkpoint, FAN_OUT[name])))
    return specs


def start_contestants(servers, arguments, checkpoint, names):
    """The same of the others."""
    specs = []
    peers = {}
    clusters = []

    def wanted(name):
        return name in names

    def add(name, kind, started, **only):
        specs.append(contestant(servers, name, kind, started, **only))

    def cluster():
        if not clusters:
            say("a table server")
            clusters.append(start_cluster(servers, arguments, checkpoint, 1))
        return clusters[0]

    def peer(kind):
        if kind not in peers:
            say(kind)
            peers[kind] = servers.start(kind, arguments.bin / "engram-bench-peer", "--kind", kind,
                                        "--checkpoint", checkpoint)
        return [peers[kind]]

    if wanted("engram_1"):
        add("engram_1", "engram", cluster())
    for kind in ("t1", "t2", "easy_grpc"):
        if wanted(kind):
            add(kind, kind, peer(kind))
    if wanted("redis"):
        say("redis")
        add("redis", "redis", [servers.start_redis()])
    if wanted("memcached"):
        say("memcached")
        add("memcached", "memcached", [servers.start_memcached(store_mb(checkpoint))])
    for kind in ("rocksdb", "in_process"):
        if wanted(kind):
            add(kind, kind, [])
    # Parts of the floor: one at a time, and an empty call is the same whatever
    # the rows of the others.
    if wanted("tcp_bytes"):
        add("tcp_bytes", "tcp_bytes", peer("t1"), only_ids=["uniform"], only_in_flight=[1])
    for kind in ("empty_stream", "empty_unary"):
        if wanted(kind):
            add(kind, kind, cluster(), only_ids=["uniform"], only_in_flight=[1], only_rows=[1536])
    return specs


def store_mb(checkpoint):
    table_bytes = sum(path.stat().st_size for path in checkpoint.glob("*.safetensors"))
    return 256 + table_bytes // ROW_BYTES * STORE_BYTES_PER_ROW // 2**20


def drive(servers, arguments, checkpoint, contestants):
    cells = [{"ids": ids, "rows": rows, "in_flight": in_flight}
             for ids, rows, in_flight in itertools.product(arguments.ids, arguments.rows, arguments.in_flight)]
    spec = {"checkpoint": str(checkpoint), "rounds": arguments.rounds, "duration_ms": arguments.duration_ms,
            "cells": cells, "contestants": contestants}
    spec_path, out_path = servers.directory / "spec.json", servers.directory / "driver.json"
    spec_path.write_text(json.dumps(spec))
    turns = len(cells) * len(contestants) * (arguments.rounds + 1)
    servers.run(arguments.bin / "engram-bench-gather", "--spec", spec_path, "--out", out_path,
                seconds=900 + turns * (arguments.duration_ms / 1000 * 2 + 4))
    return json.loads(out_path.read_text())


def describe_run(arguments):
    packages = ("redis-server", "memcached", "librocksdb-dev", "libgrpc++-dev")
    return {"benchmark": "gather", **run_description.describe_run(packages), "quick": arguments.quick,
            "rounds": arguments.rounds, "duration_ms": arguments.duration_ms}


def main():
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    arguments = parse_arguments()
    result = describe_run(arguments)
    try:
        with bench_servers.Servers() as servers:
            checkpoint = make_checkpoint(servers, arguments)
            for start, names in ((start_contestants, CONTESTANTS), (start_fan_out, FAN_OUT)):
                names = [name for name in names if name in arguments.only]
                if not names:
                    continue
                with bench_servers.Servers() as started:
                    contestants = start(started, arguments, checkpoint, names)
                    driven = drive(started, arguments, checkpoint, contestants)
                result.update(driven, cells=result.get("cells", []) + driven["cells"])
    except bench_servers.StartError as error:
        sys.exit("bench: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
    bench_report.add_medians(result)
    result["ratios"], result["ratio_definitions"] = bench_report.ratios(result)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    bench_report.print_table(result)
    if arguments.plots:
        bench_plots.write_all(result, arguments.plots)
    errors = [cell for cell in result["cells"] if cell["error"]]
    for cell in errors:
        print("FAILED %(contestant)s, %(ids)s, %(rows)d rows, %(in_flight)d in flight: %(error)s" % cell)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The benchmark of the tiers; tests/bench/run tiers builds what it needs and starts it.

Each part is a module of this folder with NAME, WHAT and measure(servers, arguments, say), which returns
(ratios, definitions, details): two dictionaries by the ratio's name, and whatever else is worth keeping.
To add one: write it and put it into PARTS.
"""
import argparse
import json
import pathlib
import signal
import sys

import bench_servers
import cold_bench
import https_load_bench
import load_bench
import memory_bench
import restart_bench
import run_description
import stores_bench

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = [load_bench, restart_bench, https_load_bench, stores_bench, cold_bench, memory_bench]

# ratio -> (at least, more than or at most; goal)
GOALS = {
    "load_vs_dd": (">=", 0.8), "warm_restart_vs_dd": (">=", 0.8), "https_load_vs_curl": (">=", 0.7),
    "cold_vs_mmap": (">", 1), "cold_vs_rocksdb_cache": (">", 1), "peak_memory_vs_budget": ("<=", 1.05),
}


def parse_arguments():
    names = [part.NAME for part in PARTS]
    parser = argparse.ArgumentParser(prog="tests/bench/run tiers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join("  %-12s %s" % (p.NAME, p.WHAT) for p in PARTS))
    parser.add_argument("--json", required=True, type=pathlib.Path, metavar="FILE", help="where the result goes")
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, metavar="NAMES",
                        help="a comma-separated list of " + ", ".join(names))
    parser.add_argument("--rounds", type=int, default=3, help="of which the ratios are medians")
    parser.add_argument("--dir", type=pathlib.Path, metavar="DIR",
                        help="on the disk that is measured (default: where temporary files are)")
    parser.add_argument("--minutes", type=float, help="of load of the part memory (default: %g, with --quick %g)" % (
        memory_bench.MINUTES, memory_bench.QUICK_MINUTES))
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(names)
    if unknown:
        parser.error("no part is named " + ", ".join(sorted(unknown)))
    return arguments


def verdict(name, value):
    if name not in GOALS:
        return ""
    sign, goal = GOALS[name]
    ok = {">=": value >= goal, ">": value > goal, "<=": value <= goal}[sign]
    return "%s %-4g %s" % (sign, goal, "ok" if ok else "MISSED")


def main():
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    arguments = parse_arguments()
    result = {"benchmark": "tiers", **run_description.describe_run(), "quick": arguments.quick,
              "rounds": arguments.rounds, "parts": {}, "ratios": {}, "ratio_definitions": {}}
    try:
        for part in PARTS:
            if part.NAME not in arguments.only:
                continue
            with bench_servers.Servers(arguments.dir) as servers:
                ratios, definitions, details = part.measure(
                    servers, arguments, lambda text: print("bench: %s: %s" % (part.NAME, text), file=sys.stderr))
            result["parts"][part.NAME] = details
            result["ratios"].update(ratios)
            result["ratio_definitions"].update(definitions)
            # After each, so that one that fails takes no other with it.
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    except bench_servers.StartError as error:
        sys.exit("bench: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
    for name, value in result["ratios"].items():
        print("%-28s %8.3f  %s" % (name, value, verdict(name, value)))


if __name__ == "__main__":
    main()

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

import bench_machine
import bench_servers
import https_load_bench

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = [https_load_bench]

# ratio -> (at least or at most, goal)
GOALS = {
    "https_load_vs_curl": (">=", 0.7),
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
    return "%s %-4g %s" % (sign, goal, "ok" if (value >= goal if sign == ">=" else value <= goal) else "MISSED")


def main():
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    arguments = parse_arguments()
    result = {**bench_machine.describe_run("tiers"), "quick": arguments.quick, "rounds": arguments.rounds,
              "parts": {}, "ratios": {}, "ratio_definitions": {}}
    try:
        for part in PARTS:
            if part.NAME not in arguments.only:
                continue
            with bench_servers.Servers() as servers:
                ratios, definitions, details = part.measure(
                    servers, arguments, lambda text: print("bench: %s: %s" % (part.NAME, text), file=sys.stderr))
            result["parts"][part.NAME] = details
            result["ratios"].update(ratios)
            result["ratio_definitions"].update(definitions)
    except bench_servers.StartError as error:
        sys.exit("bench: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    for name, value in result["ratios"].items():
        print("%-28s %8.3f  %s" % (name, value, verdict(name, value)))


if __name__ == "__main__":
    main()

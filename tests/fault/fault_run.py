"""Runs scenarios at full size and says what holds; tests/fault/run builds what it needs and starts it."""
import argparse
import json
import pathlib
import signal
import sys
import time

import cluster
import run_description
import scenarios
import sizes
from report import Report, number

STEP_SCENARIOS = ("workers", "worker_stopped", "worker_flipped", "worker_unready")


def parse_arguments():
    names = list(scenarios.ALL)
    parser = argparse.ArgumentParser(prog="tests/fault/run", description=__doc__)
    parser.add_argument("--full", action="store_true", help="at least 100,000 samples of each latency")
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, metavar="NAME,...")
    parser.add_argument("--json", type=pathlib.Path, metavar="DIR", help="a file for each scenario")
    parser.add_argument("--list", action="store_true", help="the scenarios' names")
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(names)
    if unknown:
        parser.error("no scenario is named %s; there are %s" % (", ".join(sorted(unknown)), ", ".join(names)))
    return arguments


def run(name, size, checkpoint):
    try:
        return scenarios.ALL[name](size, checkpoint)
    except Exception as error:  # one that cannot be run must not hide the others
        report = Report(name)
        report.at_most("scenarios that could not be run", 1, 0)
        report.notes.append("%s: %s" % (type(error).__name__, error))
        return report


def tell(report, seconds):
    print("%-16s %5.0f s  %s" % (report.name, seconds, scenarios.ALL[report.name].__doc__.split("\n")[0]))
    if report.skipped:
        print("    skipped: %s" % report.skipped)
    for check in report.checks:
        print("    %-6s %-52s %12s  %s %s" % (
            "ok" if check.holds else "BROKEN", check.name, number(check.value),
            ">=" if check.at_least else "<=", number(check.limit)))
    for note in report.notes:
        print("    %s" % note[:500])
    sys.stdout.flush()


def main():
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(scenarios.ALL))
        return 0
    # So that everything that was started is stopped.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    size = sizes.FULL if arguments.full else sizes.QUICK
    if arguments.json:
        arguments.json.mkdir(parents=True, exist_ok=True)
    reports = []
    described = {**run_description.describe_run(), "full": arguments.full}
    with cluster.temporary_directory() as directory:
        checkpoint = size.make_checkpoint(directory)
        small = sizes.SHORT.make_checkpoint(directory)
        for name in arguments.only:
            start = time.monotonic()
            # Steps cost what the model's width says, and are not what is measured.
            reports.append(run(name, size, small if name in STEP_SCENARIOS else checkpoint))
            tell(reports[-1], time.monotonic() - start)
            if arguments.json:
                result = {**described, **reports[-1].as_json()}
                (arguments.json / (name + ".json")).write_text(json.dumps(result, indent=1) + "\n")
    broken = [report.name for report in reports if report.broken(timing=True)]
    skipped = [report.name for report in reports if report.skipped]
    print("\n%d scenarios: %d hold%s%s" % (
        len(reports), len(reports) - len(broken) - len(skipped),
        "; skipped: " + ", ".join(skipped) if skipped else "", "; BROKEN: " + ", ".join(broken) if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""A scenario, short, for ctest: what it finds of failures, wrong rows, deadlines and recovery is
judged, latencies are not. `--all NAMES`: that these are all scenarios there are."""
import signal
import sys

import cluster
import scenarios
import sizes

OK, FAILED, SKIPPED = 0, 1, 77


def check_all(names):
    unlisted = set(scenarios.ALL) ^ set(names)
    if unlisted:
        print("not listed, or not there: " + ", ".join(sorted(unlisted)))
    return FAILED if unlisted else OK


def check(name):
    # So that everything that was started is stopped.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(FAILED))
    with cluster.temporary_directory() as directory:
        report = scenarios.ALL[name](sizes.SHORT, sizes.SHORT.make_checkpoint(directory))
    if report.skipped:
        print("skipped: " + report.skipped)
        return SKIPPED
    for one in report.checks:
        print("%s%s" % (one, "" if one.holds else "  (not judged here)" if one.timing else "  BROKEN"))
    for name, value in report.figures.items():
        print("%s: %s" % (name, value))
    print("\n".join(report.notes))
    return FAILED if report.broken(timing=False) else OK


if __name__ == "__main__":
    sys.exit(check_all(sys.argv[2:]) if sys.argv[1] == "--all" else check(sys.argv[1]))

"""What a scenario found, and whether it is as it must be."""
import dataclasses


@dataclasses.dataclass
class Check:
    """A figure and its limit. `timing`: it depends on what else the machine does, so ctest leaves
    it out."""
    name: str
    value: float
    limit: float
    at_least: bool = False
    timing: bool = False

    @property
    def holds(self):
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self):
        return "%s: %s, the limit is %s%s" % (
            self.name, number(self.value), "at least " if self.at_least else "", number(self.limit))


class Report:
    def __init__(self, name):
        self.name = name
        self.checks = []
        self.figures = {}  # what is worth knowing and has no limit
        self.notes = []
        self.skipped = None  # why nothing was found

    def at_most(self, name, value, limit, timing=False):
        self.checks.append(Check(name, value, limit, timing=timing))

    def at_least(self, name, value, limit, timing=False):
        self.checks.append(Check(name, value, limit, at_least=True, timing=timing))

    def nothing_failed(self, result, what=""):
        """The checks that every load must pass while there is somebody to answer."""
        self.at_most("failed calls" + what, result.failed, 0)
        self.at_most("wrong answers" + what, result.wrong, 0)
        self.at_least("calls" + what, result.calls, 1)
        self.notes += result.failures
        if result.client:
            self.figures["client" + what] = result.client

    def add(self, other, what):
        """All that another one found, and where."""
        self.checks += [dataclasses.replace(check, name=check.name + what) for check in other.checks]
        self.figures.update({name + what: value for name, value in other.figures.items()})
        self.notes += other.notes

    def broken(self, timing):
        return [check for check in self.checks if not check.holds and (timing or not check.timing)]

    def read_json(self, data):
        """What `as_json` gave elsewhere."""
        self.skipped, self.figures, self.notes = data["skipped"], data["figures"], data["notes"]
        for check in data["checks"]:
            del check["holds"]
            self.checks.append(Check(**check))

    def as_json(self):
        return {"name": self.name, "skipped": self.skipped, "holds": not self.broken(timing=True),
                "checks": [dict(dataclasses.asdict(check), holds=check.holds) for check in self.checks],
                "figures": self.figures, "notes": self.notes}


def number(value):
    if isinstance(value, int) or value == int(value):
        return "{:,}".format(int(value))
    return "%.3g" % value if abs(value) < 100 else "{:,.0f}".format(value)

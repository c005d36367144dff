"""engramctl load in the background, and what came of it."""
import json
import pathlib
import re
import signal
import time

from processes import BIN, START_SECONDS, Process

LINE = re.compile(r"\s*(?:warm-up|[\d.]+ s)  sent .*  failed ([\d,]+)  p50 ")
OK, SOME_FAILED, WRONG = 0, 2, 3


class Load(Process):
    """Open-loop load, every answer checked. Runs for `seconds`, or until `end`."""
    STDERR_IS_STDOUT = True
    count = 0

    def __init__(self, directory, target, *args, rate, deadline_ms, warmup_seconds=0.3, seconds=600,
                 max_in_flight=0):
        Load.count += 1
        path = pathlib.Path(directory) / ("load%d" % Load.count)
        self.json_path = path.with_suffix(".json")
        super().__init__([BIN / "engramctl", "load", *target, "--rate", rate, "--deadline-ms", deadline_ms,
                          "--warmup-seconds", warmup_seconds, "--duration-seconds", seconds,
                          "--max-in-flight", max_in_flight, "--json", self.json_path, *args],
                         path.with_suffix(".log"))

    def go_on(self, seconds):
        """Lets so much time pass under load."""
        time.sleep(seconds)
        if self.process.poll() is not None:
            raise AssertionError("%s has ended\n%s" % (" ".join(self.command), self.output()))

    def await_start(self):
        """Until there was a second of load."""
        self._second(time.monotonic() + START_SECONDS)
        return self

    def await_failure(self, seconds=START_SECONDS):
        deadline = time.monotonic() + seconds
        while not self._second(deadline):
            pass

    def await_recovery(self, quiet_seconds, seconds=START_SECONDS):
        """Until nothing has failed for so many seconds. Returns when the last failure was told."""
        deadline = time.monotonic() + seconds
        quiet, failed_at = 0, time.monotonic()
        while quiet < quiet_seconds:
            failed = self._second(deadline)
            quiet = 0 if failed else quiet + 1
            if failed:
                failed_at = time.monotonic()
        return failed_at

    def _second(self, deadline):
        """How many calls failed in the next second that it tells of."""
        while True:
            match = LINE.match(self._next_line("a second", deadline))
            if match:
                return int(match.group(1).replace(",", ""))

    def end(self):
        """Ends it, if it has not ended, and says what came of it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.result()

    def result(self, seconds=START_SECONDS):
        code = self.wait(seconds)
        self.reader.join()
        if code not in (OK, SOME_FAILED, WRONG):
            raise AssertionError("%s ended with %d\n%s" % (" ".join(self.command), code, self.output()))
        return Result(json.loads(self.json_path.read_text()), code)

    def output(self):
        while not self.lines.empty():
            self.seen.append(self.lines.get() or "")
        return "\n".join(self.seen)


class Result:
    def __init__(self, data, exit_code):
        self.data = data
        self.exit_code = exit_code
        everything, warmup = data["all"], data["warmup"]
        self.calls = everything["calls"]
        self.ok = everything["ok"]
        self.failed = everything["failed"] + everything["not_sent"] + warmup["failed"] + warmup["not_sent"]
        self.failed += data["unfinished"]
        self.wrong = everything["wrong"] + (data["mismatch"] is not None and everything["wrong"] == 0)
        self.server_calls = everything["server_calls"]
        self.client = data.get("client")  # hedges, retries and the like
        self.latency_ms = everything["latency_ms"] or {}
        self.send_delay_ms = data["send_delay_ms"]  # how late the load itself was
        self.deadline_overrun_ms = data["deadline_overrun_ms"]
        self.codes = {failure["code"] for failure in data["failures"]}
        self.messages = [failure["first_message"] for failure in data["failures"]]
        self.failures = ["%d x %s %s: %s" % (f["count"], f["code"], f["reason"], f["first_message"])
                         for f in data["failures"]]
        if everything["not_sent"] or warmup["not_sent"]:
            self.failures.append("%d calls not sent, %d in the warm-up" % (everything["not_sent"], warmup["not_sent"]))
        if warmup["failed"]:
            self.failures.append("%d calls failed in the warm-up" % warmup["failed"])
        if data["mismatch"]:
            self.failures.append(data["mismatch"]["text"])
        per_second = next((key for key in everything if key.endswith("s_per_second")))
        self.units_per_second = everything[per_second] or 0

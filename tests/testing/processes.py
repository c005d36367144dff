"""Processes of tests: watched through lines of stdout, always stopped."""
import contextlib
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

BIN = pathlib.Path(os.environ["ENGRAM_BIN_DIR"])
START_SECONDS = 60  # generous: a loaded machine must not fail a test


class Process:
    """A server process. `expect` waits for a line of stdout, never longer than it says; `ask` has a
    program of tests/fault obey a line. Its stdin is a pipe, which ends when this process does."""
    STDERR_IS_STDOUT = False  # True: its lines are waited for too

    def __init__(self, command, log_path):
        # setpriv: a test that ctest kills leaves no server behind.
        self.command = ["setpriv", "--pdeathsig", "KILL"] + [str(word) for word in command]
        self.log_path = pathlib.Path(log_path)
        self.log_file = open(log_path, "wb")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT if self.STDERR_IS_STDOUT else self.log_file,
                                        text=True)
        self.lines = queue.Queue()
        self.seen = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def expect(self, prefix, seconds=START_SECONDS):
        """The rest of the first line that starts with `prefix`."""
        deadline = time.monotonic() + seconds
        while True:
            line = self._next_line("a line '%s'" % prefix, deadline)
            if line.startswith(prefix):
                return line[len(prefix):].strip()

    def ask(self, line, seconds=START_SECONDS):
        """What it answers after "ok"."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self._next_line("an answer to '%s'" % line, time.monotonic() + seconds)
        if answer != "ok" and not answer.startswith("ok "):
            raise AssertionError("'%s': %s" % (line, answer))
        return answer[3:]

    def _next_line(self, what, deadline):
        try:
            line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError("%s does not come in time from %s\n%s" % (
                what, " ".join(self.command), self.log())) from None
        if line is None:
            raise AssertionError("%s ended with %s before %s\n%s" % (
                " ".join(self.command), self.process.wait(), what, self.log()))
        self.seen.append(line)
        return line

    def log(self):
        self.log_file.flush()
        return self.log_path.read_text(errors="replace")

    def wait(self, seconds=START_SECONDS):
        return self.process.wait(timeout=seconds)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.log_file.close()

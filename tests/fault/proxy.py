"""The TCP proxy of tests, as a process."""
import json

from processes import BIN, Process


class Proxy(Process):
    """Forwards connections of `address` to another one. tcp_proxy/proxy.h and faults.h say what
    it obeys (`ask`)."""

    def __init__(self, to, log_path, *args):
        super().__init__([BIN / "engram-fault-proxy", "--to", to, *args], log_path)
        self.address = self.expect("listening on ")

    def stats(self):
        return json.loads(self.ask("stats"))

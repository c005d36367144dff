"""engramctl heat, of servers that engramctl load asks for rows by Zipf's law."""
import json
import math
import signal
import unittest

import cluster
from processes import BIN, Process

DONE, FAILED, INTERRUPTED = 0, 1, 130
ROWS_A_GATHER = 24
ZIPF = 1.0


class Tool(Process):
    """engramctl in the background."""
    STDERR_IS_STDOUT = True

    def __init__(self, directory, *args):
        super().__init__([BIN / "engramctl", *args], directory / (args[0] + ".log"))


def chances(row_count):
    """For the row of each rank: the chance that a gather asks for it. A client asks for each row of a gather once."""
    weights = [rank ** -ZIPF for rank in range(1, row_count + 1)]
    whole = sum(weights)
    return [-math.expm1(ROWS_A_GATHER * math.log1p(-weight / whole)) for weight in weights]


class HeatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = cls.enterClassContext(cluster.temporary_directory())
        checkpoint = cluster.copy_golden_checkpoint("tiny", cls.scratch)
        cls.running = cls.enterClassContext(cluster.Cluster(checkpoint, servers=2, replicas=2))
        cls.load = Tool(cls.scratch, "load", "--tables", cls.running.tables, "--check", "none", "--rate", 400,
                        "--rows", ROWS_A_GATHER, "--zipf", ZIPF, "--duration-seconds", 600, "--warmup-seconds", 0,
                        "--deadline-ms", 30000)
        cls.addClassCleanup(cls.load.stop)
        cls.load.expect("")  # the first second
        manifest = json.loads((checkpoint / "engram_manifest.json").read_text())
        cls.row_counts = [layer["row_count"] for layer in manifest["layers"]]
        cls.chances = sorted((c for count in cls.row_counts for c in chances(count)), reverse=True)

    def heat(self, *args, tables=None, code=DONE):
        """What heat says; it must end with `code`, if given. One server's address is enough."""
        path = self.scratch / "heat.json"
        path.unlink(missing_ok=True)
        result = cluster.engramctl("heat", "--tables", tables or self.running.client_address("t0"), "--json", path,
                                   *args, check=False)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return (json.loads(path.read_text()) if path.exists() else None), result

    def check(self, heat, slack):
        """Agrees with what the load asks for, within 5 standard errors of the estimate and `slack`, some 5 of chance."""
        lookups = heat["lookups"]
        self.assertEqual(sum(server["lookups"] for server in heat["servers"]), lookups)
        self.assertTrue(all(server["lookups"] > 0 for server in heat["servers"]))
        self.assertEqual(sum(sum(layer["partition_lookups"]) for layer in heat["layers"]), lookups)
        self.assertEqual(heat["rows_of_table"], sum(self.row_counts))
        gathers = lookups / sum(self.chances)
        self.assertGreater(gathers, 100)
        touched = sum(-math.expm1(gathers * math.log1p(-chance)) for chance in self.chances)
        self.assertAlmostEqual(heat["rows"], touched, delta=5 * heat["rows_error"] + slack * touched)
        for point in heat["hottest_rows"]:
            hottest, share = round(point["rows"]), point["share"]
            if hottest >= 100:  # of rarer rows chance makes other ones the hottest
                continue
            truth = sum(self.chances[:hottest]) / sum(self.chances)
            self.assertAlmostEqual(share, truth, delta=5 * point["share_error"] + slack, msg="%d rows" % hottest)
        shares = [point["share"] for point in heat["hottest_rows"]]
        self.assertEqual(shares, sorted(shares))
        for layer in heat["layers"]:
            self.assertAlmostEqual(layer["lookups"] / lookups, 0.5, delta=slack)
        in_buckets = sum(bucket["lookups"] for bucket in heat["histogram"])
        # The hottest rows of a small sample are few, and weigh much.
        self.assertAlmostEqual(in_buckets / lookups, 1, delta=1e-3 if heat["sample_share"] == 1 else 0.4)

    def test_every_row(self):
        heat, result = self.heat("--seconds", 4, "--top", 2)
        self.assertEqual(heat["sample_share"], 1)
        self.assertEqual(len(heat["servers"]), 2)
        self.check(heat, slack=0.05)
        # The first rank is row 0, of both layers.
        self.assertEqual([row["row"] for row in heat["top_rows"]], [0, 0])
        gathers = heat["lookups"] / sum(self.chances)
        for row in heat["top_rows"]:
            self.assertAlmostEqual(row["lookups"] / gathers, self.chances[0], delta=0.1)
        for part in ("Every row was counted", "LOOKUPS A ROW", "HOTTEST ROWS", "MAX / MEAN"):
            self.assertIn(part, result.stdout)
        self.assertIn("servers record", result.stderr)

    def test_a_sample(self):
        heat, result = self.heat("--seconds", 4, "--sample-rows", 4096)
        self.assertLess(heat["sample_share"], 0.9)
        self.assertGreater(heat["sampled_rows"], 1000)
        self.check(heat, slack=0.05)
        self.assertIn("one standard error", result.stdout)

    def test_one_at_a_time_and_interrupted(self):
        first = Tool(self.scratch, "heat", "--tables", self.running.tables, "--seconds", 600)
        self.addCleanup(first.stop)
        first.expect("2 of 2 servers record")
        _, result = self.heat("--seconds", 1, code=FAILED)
        self.assertIn("one recording at a time", result.stderr)
        self.assertIn("no server recorded anything", result.stderr)
        first.process.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(), INTERRUPTED)
        for _ in range(50):  # the servers see it a moment later
            _, result = self.heat("--seconds", 0.2, code=None)
            if result.returncode == DONE:
                break
        self.assertEqual(result.returncode, DONE, result.stderr)

    def test_a_server_that_does_not_answer(self):
        tables = self.running.client_address("t1") + ",unix:" + str(self.scratch / "nobody")
        heat, result = self.heat("--seconds", 0.5, "--only-these", "--timeout-seconds", 2, tables=tables, code=FAILED)
        self.assertIn("nobody", result.stderr)
        self.assertEqual(heat["servers"][0]["lookups"], heat["lookups"])
        self.assertIn("error", heat["servers"][1])


if __name__ == "__main__":
    unittest.main()

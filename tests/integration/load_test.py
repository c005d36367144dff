"""engramctl load: what it sends, checks and says, and its exit codes."""
import json
import shutil
import signal
import unittest

import cluster
from processes import BIN, Process

DONE, NOT_STARTED, SOME_FAILED, WRONG = 0, 1, 2, 3


class Load(Process):
    """A load in the background."""
    STDERR_IS_STDOUT = True

    def __init__(self, directory, *args):
        self.json = directory / "background.json"
        super().__init__([BIN / "engramctl", "load", "--json", self.json, *args], directory / "background.log")

    def end(self):
        code = self.wait()
        return code, json.loads(self.json.read_text())


class LoadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = cls.enterClassContext(cluster.temporary_directory())
        cls.checkpoint = cluster.copy_golden_checkpoint("tiny", cls.scratch)

    def load(self, code, *args):
        """What a load says; it must end with `code`."""
        path = self.scratch / "load.json"
        path.unlink(missing_ok=True)
        result = cluster.engramctl("load", "--json", path, *args, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return (json.loads(path.read_text()) if path.exists() else None), result

    def check_whole(self, data, sizes):
        """Nothing failed, everything was checked, and the parts make the whole."""
        everything = data["all"]
        self.assertEqual(everything["ok"], everything["calls"])
        self.assertGreater(everything["ok"], 0)
        for what in ("failed", "not_sent", "wrong"):
            self.assertEqual(everything[what], 0)
        self.assertEqual([size["size"] for size in data["sizes"]], sizes)
        for count in ("calls", "ok", "bytes"):
            self.assertEqual(sum(size[count] for size in data["sizes"]), everything[count])
        unit = "tokens" if data["kind"] == "steps" else "rows"
        self.assertEqual(everything[unit + "_checked"], everything[unit])
        self.assertEqual(sum(bucket[2] for bucket in everything["latency_histogram_ms"]), everything["ok"])
        latency = everything["latency_ms"]
        self.assertTrue(0 < latency["min"] <= latency["p50"] <= latency["p99_9"] <= latency["max"])
        self.assertEqual(sum(second["ok"] for second in data["seconds"]), everything["ok"] + data["warmup"]["calls"])
        self.assertEqual(data["failures"], [])
        self.assertIsNone(data["mismatch"])
        self.assertFalse(data["interrupted"])

    def test_gathers(self):
        with cluster.Cluster(self.checkpoint, servers=3, replicas=2) as running:
            data, result = self.load(DONE, "--tables", running.tables, "--checkpoint", self.checkpoint, "--rate", 200,
                                     "--arrivals", "even", "--rows", "24x3,200", "--zipf", 0.9, "--duration-seconds",
                                     1.5, "--warmup-seconds", 0.5, "--deadline-ms", 30000, "--max-in-flight", 1000)
            self.check_whole(data, [24, 200])
            # Open loop: as many as the schedule has, whatever the answers did.
            self.assertEqual(data["all"]["calls"], 300)
            self.assertEqual(data["warmup"]["calls"], 100)
            self.assertEqual(data["all"]["rows"], 2 * sum(s["size"] * s["ok"] for s in data["sizes"]))
            self.assertEqual(data["seconds"][0]["from_seconds"], -0.5)
            self.assertIn("NOT SENT", result.stdout)
            self.assertIn("in flight", result.stderr)

            data, _ = self.load(DONE, "--tables", running.tables, "--checkpoint", self.checkpoint, "--layers", 1,
                                "--duration-seconds", 1, "--warmup-seconds", 0, "--deadline-ms", 30000, "--check",
                                "sample:3", "--crc32c")
            self.assertEqual(data["all"]["rows"], 24 * data["all"]["ok"])
            self.assertEqual(data["all"]["rows_checked"], 8 * data["all"]["ok"])

    def test_synthetic_rows(self):
        with cluster.Cluster(self.checkpoint, server_args=["--source", "synthetic:5"]) as running:
            data, _ = self.load(DONE, "--tables", running.tables, "--synthetic", 5, "--duration-seconds", 1,
                                "--warmup-seconds", 0, "--deadline-ms", 30000)
            self.check_whole(data, [24])
            _, result = self.load(NOT_STARTED, "--tables", running.tables, "--synthetic", 6)
            self.assertIn("is not synthetic:6", result.stderr)

    def test_steps(self):
        with cluster.Cluster(self.checkpoint, servers=2, workers=2) as running:
            for args in (["--mode", "forward"], ["--mode", "apply", "--return", "contribution"]):
                data, _ = self.load(DONE, "--workers", running.worker_addresses, "--checkpoint", self.checkpoint,
                                    "--rate", 25, "--arrivals", "even", "--tokens", "1x3,16", "--duration-seconds", 1,
                                    "--warmup-seconds", 0.2, "--deadline-ms", 30000, *args)
                self.check_whole(data, [1, 16])
            other = self.scratch / "other"
            cluster.engramctl("make-checkpoint", "--preset", "tiny", "--seed", 2, "--out", other)
            _, result = self.load(NOT_STARTED, "--workers", running.worker_addresses, "--checkpoint", other)
            self.assertIn("the workers compute with table", result.stderr)

    def test_a_server_dies_and_nobody_else_has_its_rows(self):
        with cluster.Cluster(self.checkpoint, servers=2, replicas=1) as running:
            load = Load(self.scratch, "--tables", running.tables, "--checkpoint", self.checkpoint, "--rate", 100,
                        "--rows", 200, "--duration-seconds", 3, "--warmup-seconds", 0.5, "--deadline-ms", 1000)
            self.addCleanup(load.stop)
            load.expect("")  # the first second
            running.servers["t1"].stop()
            code, data = load.end()
            self.assertEqual(code, SOME_FAILED)
            everything = data["all"]
            self.assertGreater(everything["failed"], 0)
            self.assertEqual(everything["wrong"], 0)
            self.assertEqual(everything["ok"] + everything["failed"], everything["calls"])
            self.assertLessEqual({failure["code"] for failure in data["failures"]},
                                 {"UNAVAILABLE", "DEADLINE_EXCEEDED"})
            self.assertEqual(sum(failure["count"] for failure in data["failures"]), everything["failed"])
            self.assertIn("partition", data["failures"][0]["first_message"])
            self.assertGreater(max(second["failed"] for second in data["seconds"]), 0)
            self.assertEqual(data["seconds"][0]["failed"], 0)

    def test_rows_of_another_content(self):
        with cluster.Cluster(self.checkpoint, servers=2) as running:
            other = self.scratch / "reseeded"
            version = cluster.engramctl("make-checkpoint", "--preset", "tiny", "--seed", 2, "--out", other).stdout
            _, result = self.load(NOT_STARTED, "--tables", running.tables, "--checkpoint", other)
            self.assertIn(version.strip(), result.stderr)

            # The servers' manifest, but one byte of one row is another.
            spoiled, layer, row, byte = self.scratch / "spoiled", 1, 77, 5
            shutil.copytree(self.checkpoint, spoiled)
            self.flip(spoiled, layer, row, byte)
            data, result = self.load(WRONG, "--tables", running.tables, "--checkpoint", spoiled, "--rate", 50,
                                     "--rows", 400, "--duration-seconds", 60, "--warmup-seconds", 0,
                                     "--deadline-ms", 30000)
            mismatch = data["mismatch"]
            self.assertEqual((mismatch["layer"], mismatch["row"], mismatch["byte"]), (layer, row, byte))
            self.assertEqual(mismatch["wanted"] ^ mismatch["got"], 1)
            self.assertEqual(data["all"]["wrong"], 1)
            self.assertLess(data["measured_seconds"], 50)
            self.assertIn("wrong row: table %s, layer 1, row 77 in slot" % data["version"], result.stderr)

    def flip(self, checkpoint, layer, row, byte):
        """The lowest bit of one code of the layer's table."""
        index = json.loads((checkpoint / "model.safetensors.index.json").read_text())
        name = "layers.%d.engram.embed.weight" % layer
        path = checkpoint / index["weight_map"][name]
        data = bytearray(path.read_bytes())
        size = int.from_bytes(data[:8], "little")
        tensor = json.loads(data[8:8 + size])[name]
        data[8 + size + tensor["data_offsets"][0] + row * tensor["shape"][1] + byte] ^= 1
        path.write_bytes(data)

    def test_ended_with_the_keyboard(self):
        with cluster.Cluster(self.checkpoint) as running:
            load = Load(self.scratch, "--tables", running.tables, "--checkpoint", self.checkpoint,
                        "--duration-seconds", 600, "--warmup-seconds", 0, "--deadline-ms", 30000)
            self.addCleanup(load.stop)
            load.expect("")
            load.process.send_signal(signal.SIGINT)
            code, data = load.end()
            self.assertEqual(code, DONE)
            self.assertTrue(data["interrupted"])
            self.assertLess(data["measured_seconds"], 500)
            self.assertEqual(data["all"]["ok"], data["all"]["calls"])

    def test_what_cannot_start(self):
        nobody = "unix:%s/nobody" % self.scratch
        for args, text in (
                ([], "--tables"),
                (["--tables", nobody], "--check all"),
                (["--tables", nobody, "--unknown"], "--unknown"),
                (["--tables", nobody, "--workers", nobody], "--workers"),
                (["--tables", nobody, "--check", "none", "--rate", "0"], "no number from 0.001"),
                (["--tables", nobody, "--check", "none", "--rows", "24x"], "24x"),
                (["--tables", nobody, "--check", "none", "--timeout-seconds", "0.2"], nobody),
                (["--workers", nobody, "--timeout-seconds", "0.2"], nobody),
                (["--tables", nobody, "--checkpoint", self.scratch / "none"], "none")):
            with self.subTest(args=args):
                _, result = self.load(NOT_STARTED, *args)
                self.assertIn(text, result.stderr + result.stdout)
        result = cluster.engramctl("load", "--tables", nobody, "--check", "none", "--json",
                                   self.scratch / "no" / "where", check=False)
        self.assertEqual(result.returncode, NOT_STARTED)
        self.assertIn("where", result.stderr)
        self.assertEqual(cluster.engramctl("load", "--help").returncode, 0)

    def test_memory_is_bounded(self):
        with cluster.Cluster(self.checkpoint) as running:
            _, result = self.load(NOT_STARTED, "--tables", running.tables, "--check", "none", "--rows", 1000000,
                                  "--max-memory-mb", 100)
            self.assertIn("--max-memory-mb", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

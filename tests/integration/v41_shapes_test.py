"""The true shapes of DeepSeek-V4.1-Flash: a short table end to end, and the 384M-row layout."""
import json
import unittest

import numpy as np

import cluster
import engram_oracle as oracle
import tolerance

CONFIG = cluster.GOLDEN.parents[2] / "deploy" / "config" / "deepseek-v4.1"


class ShortTablesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = cls.enterClassContext(cluster.temporary_directory())
        cls.checkpoint = scratch / "v41-mini"
        oracle.make_checkpoint(oracle.PRESETS["v41-mini"], 1, str(cls.checkpoint))
        cluster.engramctl("manifest", cls.checkpoint)
        cls.out = scratch / "out.safetensors"
        cls.source = cluster.GOLDEN / "v41-mini.golden.safetensors"
        cls.golden = oracle.read_safetensors(cls.source)
        cls.running = cls.enterClassContext(cluster.Cluster(cls.checkpoint, servers=3, replicas=2, workers=1))

    def apply(self, *args):
        self.out.unlink(missing_ok=True)
        cluster.engramctl("apply", "--worker", self.running.worker_addresses, "--in", self.source, "--out",
                          self.out, *args)
        return oracle.read_safetensors(self.out)

    def test_golden_and_same_bits(self):
        layers = [int(n.split(".")[1]) for n in self.golden if n.endswith(".streams_in")]
        self.assertEqual(sorted(layers), [1, 14])
        first = self.apply()
        for layer in layers:
            name = "layers.%d.streams_out" % layer
            self.assertEqual(tolerance.streams_mismatch(first[name], self.golden, layer), "")
        length = self.golden["tokens"].shape[1]
        for args in (["--mode", "forward"], ["--chunks", "1,%d" % (length - 1)],
                     ["--mode", "forward", "--chunks", ",".join(["1"] * length)]):
            again = self.apply(*args)
            for layer in layers:
                name = "layers.%d.streams_out" % layer
                self.assertTrue(np.array_equal(again[name], first[name]), "%s %s" % (name, args))


class TrueLayoutTest(unittest.TestCase):
    def test_layout(self):
        printed = json.loads(cluster.engramctl("layout", "--config", CONFIG / "config.json").stdout)
        wanted = json.loads((cluster.GOLDEN / "v41.layout.json").read_text())
        for key in ("primes", "offsets", "rows", "multipliers"):
            self.assertEqual(printed[key], wanted[key])

    def test_hash_ids(self):
        source = cluster.GOLDEN / "v41.hash.safetensors"
        golden = oracle.read_safetensors(source)
        with cluster.temporary_directory() as scratch:
            golden["token_map"].astype("<i4").tofile(scratch / "map.bin")
            out = scratch / "out.safetensors"
            cluster.engramctl("hash", "--config", CONFIG / "config.json", "--token-map", scratch / "map.bin",
                              "--in", source, "--out", out)
            self.assertTrue(np.array_equal(oracle.read_safetensors(out)["hash_ids"], golden["hash_ids"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""The whole step through remote shards: golden vectors, and the same bits however it is run."""
import unittest

import numpy as np

import cluster
import engram_oracle as oracle
import tolerance

GOLDENS = ("tiny", "odd", "tiny-scale")


def layers_of(golden):
    return sorted(int(name.split(".")[1]) for name in golden if name.endswith(".streams_in"))


class StepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = cls.enterClassContext(cluster.temporary_directory())
        cls.checkpoints = {name: cluster.copy_golden_checkpoint(name, cls.scratch) for name in GOLDENS}
        cls.goldens = {name: oracle.read_safetensors(cluster.GOLDEN / (name + ".golden.safetensors"))
                       for name in GOLDENS}

    def apply(self, running, name, *args):
        out = self.scratch / "out.safetensors"
        out.unlink(missing_ok=True)
        cluster.engramctl("apply", "--worker", running.worker_addresses, "--in",
                          cluster.GOLDEN / (name + ".golden.safetensors"), "--out", out, *args)
        return cluster.raw_tensors(out), oracle.read_safetensors(out)

    def check_golden(self, name, tensors):
        golden = self.goldens[name]
        for layer in layers_of(golden):
            out = tensors["layers.%d.streams_out" % layer]
            self.assertEqual(tolerance.streams_mismatch(out, golden, layer), "")

    def check_contribution(self, name, streams, tensors):
        """round(h + fl32(gate * value)) of the caller must be the worker's own sum, to the bit."""
        golden = self.goldens[name]
        live = golden["mask"]
        for layer in layers_of(golden):
            prefix = "layers.%d." % layer
            gate, value = tensors[prefix + "gate"], oracle.from_bf16_bits(tensors[prefix + "value"])
            self.assertTrue((gate[~live].view(np.uint32) == 0).all(), "dead gates are not +0")
            self.assertTrue((tensors[prefix + "value"][~live] == 0).all(), "dead values are not +0")
            streams_in = golden[prefix + "streams_in"]
            product = (gate[..., None] * value[..., None, :]).astype(np.float32)
            total = tolerance.streams_as_float(streams_in) + product
            rounded = oracle.to_bf16_bits(total) if streams_in.dtype == np.uint16 else total
            want = np.where(live[..., None, None], rounded, streams_in)
            self.assertEqual(want.tobytes(), streams[prefix + "streams_out"][2])

    def test_same_bits_for_any_cluster(self):
        for name in GOLDENS:
            length = self.goldens[name]["tokens"].shape[1]
            chunks = ",".join(map(str, [1, 2, length - 4, 1]))
            first = None
            for servers, replicas in ((1, 1), (2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (5, 2)):
                with self.subTest(name=name, servers=servers, replicas=replicas), cluster.Cluster(
                        self.checkpoints[name], servers, replicas, workers=1) as running:
                    streams, tensors = self.apply(running, name)
                    if first is None:
                        first = streams
                        self.check_golden(name, tensors)
                    self.assertEqual(streams, first)
                    self.assertEqual(self.apply(running, name, "--mode", "forward")[0], first)
                    self.assertEqual(self.apply(running, name, "--chunks", chunks)[0], first)
                    self.assertEqual(self.apply(running, name, "--mode", "forward", "--chunks", chunks)[0], first)
                    for mode in ("apply", "forward"):
                        _, contribution = self.apply(running, name, "--mode", mode, "--return", "contribution")
                        self.check_contribution(name, first, contribution)

    def test_gather_gives_the_stored_rows(self):
        for name in GOLDENS:
            golden = self.goldens[name]
            _, tensors, _ = oracle.load_checkpoint(self.checkpoints[name])
            with cluster.Cluster(self.checkpoints[name], servers=3, replicas=2) as running:
                for index, layer in enumerate(layers_of(golden)):
                    ids = golden["hash_ids"][:, :, index].reshape(-1)
                    source, out = self.scratch / "ids.safetensors", self.scratch / "rows.safetensors"
                    oracle.write_safetensors(source, {"layers.%d.row_ids" % layer: ("I64", ids)})
                    cluster.engramctl("gather", "--tables", running.tables, "--layer", layer, "--in", source,
                                      "--out", out)
                    packed = oracle.read_safetensors(out)["layers.%d.packed_rows" % layer]
                    prefix = "layers.%d.engram.embed." % layer
                    want = np.concatenate([tensors[prefix + "weight"][ids], tensors[prefix + "scale"][ids]], -1)
                    self.assertTrue(np.array_equal(packed, want))

    def test_chunked_hash_gives_the_golden_ids(self):
        for name in GOLDENS:
            golden = self.goldens[name]
            length = golden["tokens"].shape[1]
            for chunks in (str(length), "1,%d" % (length - 1), ",".join(["1"] * length)):
                out = self.scratch / "ids.safetensors"
                cluster.engramctl("hash", "--config", self.checkpoints[name] / "config.json", "--token-map",
                                  self.checkpoints[name] / "engram_token_map.bin", "--in",
                                  cluster.GOLDEN / (name + ".golden.safetensors"), "--out", out, "--chunks", chunks)
                self.assertTrue(np.array_equal(oracle.read_safetensors(out)["hash_ids"], golden["hash_ids"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)

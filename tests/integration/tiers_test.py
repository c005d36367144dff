"""More table than memory: rows from a local store, restarts from it, and a disk that lies."""
import collections
import concurrent.futures
import random
import shutil
import threading
import time
import unittest

import grpc
import numpy as np

import admin
import cluster
import engram_oracle as oracle
from engram.v1 import table_pb2, table_pb2_grpc
from processes import Process

SECONDS = 30
LAYERS = (1, 14)
HOST_MB = 3  # about a quarter of the rows
PAGE = 4096


class TieredCluster(cluster.Cluster):
    """Servers with a flat store each, in `stores`/NAME."""

    def __init__(self, checkpoint, stores, host_mb=HOST_MB, cache_mb=1, **more):
        super().__init__(checkpoint, **more)
        self.stores, self.host_mb, self.cache_mb = stores, host_mb, cache_mb

    def server_command(self, name):
        return super().server_command(name) + [
            "--store", "flat:%s" % (self.stores / name), "--host-mb", self.host_mb, "--cache-mb", self.cache_mb,
            "--admin", "127.0.0.1:0"]


class TiersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = cls.enterClassContext(cluster.temporary_directory()) / "made"
        oracle.make_checkpoint(dict(oracle.PRESETS["tiny"], engram_vocab_size=8000), 1, str(cls.made))
        cluster.engramctl("manifest", cls.made)
        _, tensors, _ = oracle.load_checkpoint(cls.made)
        cls.packed = {layer: np.concatenate([tensors["layers.%d.engram.embed.weight" % layer],
                                             tensors["layers.%d.engram.embed.scale" % layer]], -1)
                      for layer in LAYERS}

    def setUp(self):
        self.scratch = self.enterContext(cluster.temporary_directory())
        self.checkpoint = self.scratch / "checkpoint"
        shutil.copytree(self.made, self.checkpoint)
        self.stores = self.scratch / "stores"
        self.stores.mkdir()

    def stub(self, running, name):
        # Not the connection of another channel to a server of this address that has ended.
        channel = grpc.insecure_channel(running.address(name), [("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return table_pb2_grpc.TableServiceStub(channel)

    def gather(self, stub, layer, ids):
        request = table_pb2.GatherRequest(layers=[table_pb2.LayerRows(layer_id=layer, row_ids=ids)])
        return stub.Gather(request, timeout=SECONDS).rows

    def check_all_rows(self, stub, seed=1, threads=2):
        """Every row of the table once, in random order, compared with the checkpoint."""
        wrong = collections.deque()

        def check(layer):
            ids = list(range(len(self.packed[layer])))
            random.Random(seed + layer).shuffle(ids)
            for at in range(0, len(ids), 2000):
                part = ids[at:at + 2000]
                if self.gather(stub, layer, part) != self.packed[layer][part].tobytes():
                    wrong.append((layer, at))
        with concurrent.futures.ThreadPoolExecutor(threads) as workers:
            list(workers.map(check, LAYERS[:threads]))
        self.assertFalse(wrong)

    def metric(self, process, name):
        return admin.metric(admin.get(admin.address(process), "/metrics")[1], "engram_table_" + name)

    def total_bytes(self):
        return sum(rows.nbytes for rows in self.packed.values())

    def test_every_row_is_right_and_a_restart_needs_no_network(self):
        running = self.enterContext(TieredCluster(self.checkpoint, self.stores))
        server = running.servers["t0"]
        self.assertGreater(self.total_bytes(), 3.5 * HOST_MB * 1e6)
        self.check_all_rows(self.stub(running, "t0"))
        self.assertLessEqual(self.metric(server, "tier_host_bytes"), HOST_MB * 1e6)
        self.assertGreater(self.metric(server, "tier_host_bytes"), 0.9 * HOST_MB * 1e6)
        self.assertEqual(self.metric(server, "tier_host_bytes") + self.metric(server, "cold_bytes"),
                         self.total_bytes())
        self.assertGreater(self.metric(server, "store_reads"), 0)
        self.assertGreater(self.metric(server, "cache_evictions"), 0)
        self.assertLessEqual(self.metric(server, "tier_cache_bytes"), 1e6)
        self.assertEqual(self.metric(server, "cold_failed_fetches"), 0)

        again = self.restart_without_checkpoint(running)
        self.check_all_rows(self.stub(running, "t0"), seed=2)
        self.assertEqual(self.metric(again, "store_partitions"), self.metric(again, "partitions_owned"))

    def restart_without_checkpoint(self, running):
        running.servers["t0"].stop()  # SIGKILL
        manifest = self.scratch / "manifest.json"
        shutil.copy(self.checkpoint / "engram_manifest.json", manifest)
        self.checkpoint.rename(self.scratch / "away")
        command = running.server_command("t0")
        at = command.index("--checkpoint")
        command[at:at + 2] = ["--source", "peers", "--manifest", manifest]
        again = running.servers["t0"] = Process(command, running.directory / "again.log")
        again.expect("ready")
        return again

    def damage_a_page(self, name, layer):
        """Turns a bit of the last page of a partition; returns the rows of that page and of others of it."""
        path = max(self.stores.glob("%s/*/layer-%d/*.rows" % (name, layer)), key=lambda p: int(p.stem))
        data = bytearray(path.read_bytes())
        data[len(data) - PAGE] ^= 1
        path.write_bytes(data)
        row_bytes = self.packed[layer].shape[1]
        per_page = (PAGE - 8) // row_bytes
        pages = (len(data) - PAGE) // PAGE
        partition = int(path.stem)
        rows = 1 << (len(self.packed[layer]) // 64).bit_length() - 1
        first = partition * rows + (pages - 1) * per_page
        return partition, [first], [partition * rows, first - 1]

    def gather_once_it_is_there(self, stub, layer, ids):
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.gather(stub, layer, ids)
            except grpc.RpcError:
                if time.monotonic() > deadline:
                    raise
            threading.Event().wait(0.02)

    def test_a_damaged_page_fails_its_rows_until_the_partition_is_loaded_anew(self):
        running = self.enterContext(TieredCluster(self.checkpoint, self.stores, host_mb=0, cache_mb=0))
        partition, bad, good = self.damage_a_page("t0", 1)
        stub = self.stub(running, "t0")
        with self.assertRaises(grpc.RpcError) as failed:
            self.gather(stub, 1, bad)
        self.assertEqual(failed.exception.code(), grpc.StatusCode.UNAVAILABLE)
        for text in ("server t0", "layer 1", "partition %d" % partition, "DATA_LOSS", "%d.rows" % partition):
            self.assertIn(text, failed.exception.details())
        self.assertEqual(self.gather(stub, 14, bad), self.packed[14][bad].tobytes())
        for ids in (good, bad):
            self.assertEqual(self.gather_once_it_is_there(stub, 1, ids), self.packed[1][ids].tobytes())
        server = running.servers["t0"]
        self.assertEqual(self.metric(server, "damaged_copies"), 1)
        self.assertEqual(self.metric(server, "store_corrupt_blocks"), 1)
        self.assertEqual(self.metric(server, "store_partitions"), self.metric(server, "partitions_owned"))
        self.check_all_rows(stub)

    def test_the_replica_has_what_a_damaged_page_had(self):
        running = self.enterContext(TieredCluster(self.checkpoint, self.stores, host_mb=0, cache_mb=0, servers=2,
                                                  replicas=2))
        _, bad, good = self.damage_a_page("t0", 1)
        for ids in (bad, good):
            for _ in range(4):  # whomever the client asks first
                self.check_rows_of_the_client(running, ids)

    def client_gather(self, running, ids, *flags, **options):
        """Rows of layer 1 by the client library; the finished process and the file of the rows."""
        asked, out = self.scratch / "ids.safetensors", self.scratch / "rows.safetensors"
        oracle.write_safetensors(asked, {"layers.1.row_ids": ("I64", np.array(ids, np.int64))})
        out.unlink(missing_ok=True)
        return cluster.engramctl("gather", "--tables", running.tables, "--layer", 1, "--in", asked, "--out", out,
                                 *flags, **options), out

    def check_rows_of_the_client(self, running, ids):
        _, out = self.client_gather(running, ids)
        rows = oracle.read_safetensors(out)["layers.1.packed_rows"]
        self.assertEqual(rows.tobytes(), self.packed[1][ids].tobytes())

    def test_without_a_replica_the_client_waits_until_the_partition_is_there_again(self):
        running = self.enterContext(TieredCluster(self.checkpoint, self.stores, host_mb=0, cache_mb=0))
        _, bad, _ = self.damage_a_page("t0", 1)
        self.check_rows_of_the_client(running, bad)
        self.assertEqual(self.metric(running.servers["t0"], "damaged_copies"), 1)

    def test_where_nobody_has_the_rows_the_client_says_why(self):
        running = self.enterContext(TieredCluster(self.checkpoint, self.stores, host_mb=0, cache_mb=0))
        again = self.restart_without_checkpoint(running)
        partition, bad, good = self.damage_a_page("t0", 1)
        result, _ = self.client_gather(running, bad, "--timeout-seconds", 3, check=False)
        self.assertNotEqual(result.returncode, 0)
        for text in ("server t0 could not read", "layer 1 partition %d" % partition, "table version"):
            self.assertIn(text, result.stderr)
        # The last failure may be that the copy, which was dropped, is not there any more.
        self.assertRegex(result.stderr, r"DATA_LOSS: .*/%d\.rows" % partition)
        self.assertEqual(self.metric(again, "damaged_copies"), 1)
        self.assertEqual(self.metric(again, "ready"), 1)
        # The whole partition is gone, others are not.
        result, _ = self.client_gather(running, good, "--timeout-seconds", 1, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.check_rows_of_the_client(running, [0])

    def test_a_share_that_fits_nowhere_is_refused(self):
        running = cluster.Cluster(self.checkpoint)
        self.addCleanup(running.__exit__)
        for extra, texts in ((["--store", "flat:%s" % self.stores, "--cache-mb", 1 << 29],
                              ["too little memory", "row cache"]),
                             (["--store", "tape:/x"], ["tape:/x", "rocksdb:DIR"]),
                             (["--host-mb", 1], ["needs a local store"])):
            server = running.start_server("t0", *extra)
            self.assertEqual(server.wait(), 1, server.log())
            for text in texts:
                self.assertIn(text, server.log())
            server.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)

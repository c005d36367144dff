"""engramctl import and verify: local stores filled before a server starts, and looked at after harm."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

import grpc
import numpy as np

import admin
import cluster
import engram_oracle as oracle
import range_server
from engram.v1 import table_pb2, table_pb2_grpc
from processes import Process

os.environ["no_proxy"] = "127.0.0.1"  # whatever the environment's proxies are
SECONDS = 60
LAYERS = (1, 14)
KINDS = ("flat", "rocksdb")
# Of each kind of store; more take longer and find more.
KILLS = int(os.environ.get("ENGRAM_IMPORT_KILLS", 10))
THREADS = 2  # of those that are killed
DAMAGE, CANNOT = 1, 2  # exit codes of verify


class ImportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checkpoint = cls.enterClassContext(cluster.temporary_directory()) / "checkpoint"
        oracle.make_checkpoint(dict(oracle.PRESETS["tiny"], engram_vocab_size=8000), 1, str(cls.checkpoint))
        cluster.engramctl("manifest", cls.checkpoint)
        _, tensors, _ = oracle.load_checkpoint(cls.checkpoint)
        cls.packed = {layer: np.concatenate([tensors["layers.%d.engram.embed.weight" % layer],
                                             tensors["layers.%d.engram.embed.scale" % layer]], -1)
                      for layer in LAYERS}
        manifest = json.loads((cls.checkpoint / "engram_manifest.json").read_text())
        cls.partition_rows = manifest["partition_rows"]
        cls.partitions = sum(len(layer["digests"]) for layer in manifest["layers"])

    def setUp(self):
        self.scratch = self.enterContext(cluster.temporary_directory())

    def store(self, kind, name="store"):
        return "%s:%s" % (kind, self.scratch / name)

    def import_into(self, store, *more, checkpoint=None, code=0):
        done = cluster.engramctl("import", "--checkpoint", checkpoint or self.checkpoint, "--store", store, *more,
                                 check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def verify(self, *args, code=0):
        """What it says as JSON; of one that fails what it says on stderr."""
        done = cluster.engramctl("verify", *args, "--json", check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def serve(self, store, name="a", members="", checkpoint=None):
        """A server of that store, which has no other place to load from unless it is given a checkpoint."""
        command = [cluster.BIN / "engram-table-server", "--listen", "unix:%s/%s.sock" % (self.scratch, name),
                   "--server-name", name, "--store", store, "--host-mb", 1, "--admin", "127.0.0.1:0",
                   "--drain-seconds", 0]
        command += ["--checkpoint", checkpoint] if checkpoint else ["--source", "peers"]
        server = Process(command + (["--members", members] if members else []), self.scratch / (name + ".log"))
        self.addCleanup(server.stop)
        return server

    def check_rows(self, name="a"):
        with grpc.insecure_channel("unix:%s/%s.sock" % (self.scratch, name)) as channel:
            stub = table_pb2_grpc.TableServiceStub(channel)
            for layer in LAYERS:
                ids = random.Random(layer).sample(range(len(self.packed[layer])), 5000)
                reply = stub.Gather(table_pb2.GatherRequest(layers=[table_pb2.LayerRows(layer_id=layer, row_ids=ids)]),
                                    timeout=SECONDS)
                self.assertEqual(reply.rows, self.packed[layer][ids].tobytes())

    def everything(self):
        return {path: path.read_bytes() for path in self.scratch.rglob("*") if path.is_file()}

    def test_a_server_starts_from_what_was_imported(self):
        for kind in KINDS:
            with self.subTest(kind):
                store = self.store(kind, kind)
                done = self.import_into(store)
                self.assertIn("%d of %d partitions are in" % (self.partitions, self.partitions), done.stderr)
                self.assertEqual(done.stdout.strip(), self.verify("--store", store)["version"])
                again = self.import_into(store)
                self.assertIn(": 0 (0 B) imported", again.stderr)
                for args in ([], ["--checkpoint", self.checkpoint], ["--table-version", done.stdout[:10]]):
                    report = self.verify("--store", store, *args)
                    self.assertEqual((report["partitions"]["verified"], report["ok"]), (self.partitions, True))
                server = self.serve(store)
                server.expect("ready")
                self.check_rows()
                # It has the directory to itself.
                self.assertIn("is in use by another server", self.verify("--store", store, code=CANNOT))
                self.assertIn("is in use by another server", self.import_into(store, code=1).stderr)
                server.terminate()
                self.assertEqual(server.wait(), 0)
                self.verify("--store", store)

    def test_what_a_server_filled_can_be_verified_by_itself(self):
        for kind in KINDS:
            store = self.store(kind, kind)
            server = self.serve(store, checkpoint=self.checkpoint)
            server.expect("ready")
            server.stop()  # SIGKILL
            self.assertEqual(self.verify("--store", store)["partitions"]["verified"], self.partitions)

    def test_a_start_without_the_network(self):
        with range_server.RangeServer(self.checkpoint) as remote:
            self.import_into(self.store("flat"), checkpoint=remote.url)
        server = self.serve(self.store("flat"), checkpoint=remote.url)
        server.expect("ready")
        self.check_rows()
        self.assertIn("until the next start", (self.scratch / "a.log").read_text())

    def test_only_what_a_server_owns(self):
        names = ("a", "b", "c")
        members = "static:" + ",".join("%s=unix:%s/%s.sock" % (name, self.scratch, name) for name in names)
        held = 0
        for name in names:
            self.import_into(self.store("flat", name), "--members", members, "--server-name", name)
            report = self.verify("--store", self.store("flat", name))["partitions"]
            self.assertEqual(report["verified"] + report["missing"], self.partitions)
            held += report["verified"]
        self.assertEqual(held, self.partitions)
        servers = [self.serve(self.store("flat", name), name, members) for name in names]
        for server in servers:
            server.expect("ready")  # with nobody to load from
            metrics = admin.get(admin.address(server), "/metrics")[1]
            self.assertEqual(admin.metric(metrics, "engram_table_store_partitions"),
                             admin.metric(metrics, "engram_table_partitions_owned"))
        self.import_into(self.store("flat", "one"), "--layers", 14)
        report = self.verify("--store", self.store("flat", "one"), "--layers", 14)
        self.assertEqual(report["partitions"]["missing"], 0)
        self.assertGreater(self.verify("--store", self.store("flat", "one"))["partitions"]["missing"], 0)

    def kill_once_it_has(self, store, files):
        """An import that is killed when there are so many files with rows, or before."""
        process = subprocess.Popen(
            [str(cluster.BIN / "engramctl"), "import", "--checkpoint", str(self.checkpoint), "--store", store,
             "--threads", str(THREADS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            directory = pathlib.Path(store.split(":", 1)[1])
            deadline = time.monotonic() + SECONDS
            while process.poll() is None:
                self.assertLess(time.monotonic(), deadline, "%d files do not come" % files)
                if sum(path.suffix in (".rows", ".sst") for path in directory.rglob("*")) >= files:
                    break
        finally:
            process.kill()
            ended = process.wait(timeout=SECONDS)
        return ended

    def test_killed_at_any_moment(self):
        for kind in KINDS:
            store = self.store(kind)
            draw = random.Random(7)
            killed = 0
            for attempt in range(KILLS):
                files = draw.randrange(self.partitions) if attempt else 0
                killed += self.kill_once_it_has(store, files) == -signal.SIGKILL
                done = cluster.engramctl("verify", "--store", store, "--json", check=False)
                with self.subTest(kind=kind, files=files, said=done.stdout[:2000] + done.stderr):
                    if done.returncode == CANNOT:  # it had nothing yet
                        self.assertLess(files, 3 * THREADS)  # written, brought in or marked
                    else:
                        self.assertEqual(done.returncode, 0)
                self.import_into(store)
                self.assertEqual(self.verify("--store", store)["partitions"]["verified"], self.partitions)
                shutil.rmtree(self.scratch / "store")
            self.assertGreater(killed, KILLS / 2)  # or it was never killed while it wrote

    def held_import(self, store, before):
        """An import by URL that is held after so many requests, until it is told that it may go on."""
        go_on = threading.Event()
        held = threading.Semaphore(0)

        def hold(path, wanted, count):
            if count >= before and ".safetensors" in path:
                held.release()
                go_on.wait(SECONDS)
        server = self.enterContext(range_server.RangeServer(self.checkpoint, hold))
        self.addCleanup(go_on.set)
        process = subprocess.Popen(
            [str(cluster.BIN / "engramctl"), "import", "--checkpoint", server.url, "--store", store, "--threads", "1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertTrue(held.acquire(timeout=SECONDS))
        return process, go_on

    def await_line(self, process, text):
        for line in process.stderr:
            if text in line:
                return
        self.fail("no line with '%s'" % text)

    def test_interrupted_it_goes_on_where_it_ended(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            store = self.store("flat", str(int(number)))
            process, go_on = self.held_import(store, 60)
            process.send_signal(number)
            self.await_line(process, "told to end")
            go_on.set()
            _, said = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, 128 + number, said)
            there = self.verify("--store", store)["partitions"]["verified"]
            self.assertTrue(0 < there < self.partitions)
            self.assertIn("%d of %d partitions are in" % (there, self.partitions), said)
            self.assertIn("goes on from there", said)
            self.assertIn(": %d (" % (self.partitions - there), self.import_into(store).stderr)
            self.assertEqual(self.verify("--store", store)["partitions"]["verified"], self.partitions)

    def test_a_second_signal_ends_it_at_once(self):
        store = self.store("flat")
        process, _ = self.held_import(store, 60)
        process.send_signal(signal.SIGTERM)
        self.await_line(process, "told to end")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=SECONDS), -signal.SIGTERM)
        self.verify("--store", store)
        self.import_into(store)

    def test_by_url(self):
        with range_server.RangeServer(self.checkpoint) as server:
            self.import_into(self.store("rocksdb"), checkpoint=server.url)
            self.assertTrue(self.verify("--checkpoint", server.url)["ok"])
            self.verify("--store", self.store("rocksdb"), "--checkpoint", server.url)
        self.assertIn("127.0.0.1", self.import_into(self.store("flat"), checkpoint=server.url, code=1).stderr)

    def flip_row(self, layer, row, directory):
        """A bit of that row, in the one file that has it. Returns the file."""
        wanted = self.packed[layer][row].tobytes()
        for path in directory.rglob("*"):
            if path.suffix not in (".rows", ".sst"):
                continue
            data = bytearray(path.read_bytes())
            at = data.find(wanted)
            if at >= 0:
                data[at] ^= 1
                path.write_bytes(data)
                return path
        self.fail("no file has the row")

    def test_damage_of_a_store_is_named_and_left(self):
        for kind in KINDS:
            store = self.store(kind, kind)
            self.import_into(store)
            row = 5 * self.partition_rows + 7
            files = {layer: self.flip_row(layer, row, self.scratch / kind) for layer in LAYERS}
            before = self.everything()
            for _ in range(2):
                report = self.verify("--store", store, code=DAMAGE)
                self.assertEqual({bad["layer"]: (bad["partition"], bad["files"], bad["state"])
                                  for bad in report["bad"]},
                                 {layer: (5, str(files[layer]), "damaged") for layer in LAYERS})
                self.assertEqual(report["partitions"]["verified"], self.partitions - 2)
            text = cluster.engramctl("verify", "--store", store, check=False)
            self.assertEqual(text.returncode, DAMAGE)
            self.assertIn("layer 14 partition 5 damaged", text.stdout)
            self.assertIn(str(files[14]), text.stdout)
            self.assertEqual(self.everything(), before)

    def test_damage_of_a_checkpoint(self):
        damaged = self.scratch / "damaged"
        shutil.copytree(self.checkpoint, damaged)
        path = sorted(damaged.glob("*.safetensors"))[0]
        data = bytearray(path.read_bytes())
        codes = self.packed[1][3 * self.partition_rows:, :-1]
        data[data.index(codes[:4].tobytes())] ^= 1
        path.write_bytes(data)
        report = self.verify("--checkpoint", damaged, code=DAMAGE)
        self.assertEqual([(bad["layer"], bad["partition"], bad["files"]) for bad in report["bad"]],
                         [(1, 3, str(path))])
        self.assertNotEqual(report["bad"][0]["expected_digest"], report["bad"][0]["actual_digest"])
        self.verify("--checkpoint", self.checkpoint)
        said = self.import_into(self.store("flat"), checkpoint=damaged, code=1).stderr
        self.assertIn("layer 1 partition 3", said)
        self.verify("--store", self.store("flat"))
        # The store goes on from a sound one, of the same version.
        self.import_into(self.store("flat"))
        self.assertEqual(self.verify("--store", self.store("flat"))["partitions"]["verified"], self.partitions)

    def test_what_makes_no_sense_is_refused(self):
        nothing = self.store("flat", "nothing")
        self.assertIn("keeps no manifest", self.verify("--store", nothing, code=CANNOT))
        self.assertIn("--checkpoint or --store", self.verify(code=CANNOT))
        self.verify("--store", "tape:/x", code=CANNOT)
        self.verify("--checkpoint", self.scratch / "none", code=CANNOT)
        self.assertFalse((self.scratch / "nothing").exists())
        self.import_into("tape:/x", code=2)
        self.import_into(nothing, "--members", "static:a=unix:/x", code=2)
        self.import_into(nothing, "--layers", 3, code=2)
        self.import_into(nothing, "--manifest", "x", code=2)
        self.assertFalse((self.scratch / "nothing").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)

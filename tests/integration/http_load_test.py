"""A checkpoint by URL: table servers that load it over HTTP(S), from a server that also fails."""
import os
import signal
import subprocess
import threading
import time
import unittest

import grpc
import numpy as np

import admin
import cluster
import range_server
from certificate import make_certificate
from engram.v1 import table_pb2, table_pb2_grpc
from range_server import Fault

SECONDS = 60
os.environ["no_proxy"] = "127.0.0.1"  # whatever the environment's proxies are


class HttpLoadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = cls.enterClassContext(cluster.temporary_directory())
        cls.checkpoint = cluster.copy_golden_checkpoint("tiny", cls.scratch)
        cls.tensors = {}
        for path in cls.checkpoint.glob("*.safetensors"):
            cls.tensors.update(cluster.raw_tensors(path))

    def serve(self, faults=lambda path, wanted, count: None, **more):
        return self.enterContext(range_server.RangeServer(self.scratch, faults, **more))

    def start(self, url, servers=1, server_args=()):
        return self.enterContext(cluster.Cluster(url, servers=servers, server_args=[
            "--admin", "127.0.0.1:0", "--drain-seconds", "0", *server_args]))

    def refused(self, url, *args, seconds=SECONDS):
        result = subprocess.run(
            [str(cluster.BIN / "engram-table-server"), "--checkpoint", url, "--listen",
             "unix:%s/refused.sock" % self.scratch, "--server-name", "a", *map(str, args)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNotIn("ready", result.stdout)
        return result.stderr

    def check_rows(self, running):
        """Every row that the servers hold against the files. Returns how many partitions each holds."""
        held = []
        for name in running.names:
            with grpc.insecure_channel(running.address(name)) as channel:
                stub = table_pb2_grpc.TableServiceStub(channel)
                info = stub.GetTable(table_pb2.GetTableRequest(), timeout=SECONDS)
                watch = stub.WatchPartitions(table_pb2.WatchPartitionsRequest(), timeout=SECONDS)
                layers = next(watch).snapshot.layers
                watch.cancel()
                held.append(sum(self.check_layer(stub, info, layer) for layer in layers))
        return held

    def check_layer(self, stub, info, layer):
        codes, scales = (self.tensors["layers.%d.engram.embed.%s" % (layer.layer_id, name)]
                         for name in ("weight", "scale"))
        bits = np.unpackbits(np.frombuffer(layer.bitmap, np.uint8), bitorder="little")[:layer.partition_count]
        packed = np.hstack([np.frombuffer(data, np.uint8).reshape(shape) for _, shape, data in (codes, scales)])
        partitions = np.flatnonzero(bits)
        for partition in partitions:
            first = int(partition) * info.partition_rows
            rows = range(first, min(first + info.partition_rows, len(packed)))
            reply = stub.Gather(table_pb2.GatherRequest(layers=[table_pb2.LayerRows(
                layer_id=layer.layer_id, row_ids=rows)]), timeout=SECONDS)
            self.assertEqual(reply.rows, packed[rows.start:rows.stop].tobytes())
        return len(partitions)

    def metric(self, running, name, **labels):
        return sum(admin.metric(admin.get(admin.address(server), "/metrics")[1], name, **labels)
                   for server in running.servers.values())

    def table_bytes(self):
        return sum(len(data) for name, (_, _, data) in self.tensors.items() if ".embed." in name)

    def data_requests(self, server):
        return [r for r in server.requests if r[0].endswith(".safetensors")]

    def test_loads_every_row_and_no_other_byte(self):
        server = self.serve()
        running = self.start(server.url + "/tiny/")
        self.assertGreater(self.check_rows(running)[0], 100)
        self.assertTrue(all(wanted for _, wanted, _ in self.data_requests(server)))
        headers = sum(path.stat().st_size for path in self.checkpoint.iterdir() if path.suffix == ".json")
        self.assertLess(server.sent_bytes, self.table_bytes() + headers + (64 << 10))
        self.assertEqual(self.metric(running, "engram_table_http_requests_total"), len(server.requests))
        self.assertEqual(self.metric(running, "engram_table_http_received_bytes_total"), server.sent_bytes)
        self.assertEqual(self.metric(running, "engram_table_http_failures_total"), 0)

    def test_two_servers_share_the_bytes(self):
        server = self.serve()
        running = self.start(server.url + "/tiny", servers=2)
        held = self.check_rows(running)
        self.assertTrue(all(held), held)
        self.assertLess(server.sent_bytes, 1.1 * self.table_bytes())

    def test_what_breaks_is_made_good(self):
        retried = iter(range(10**6))

        def faults(path, wanted, count):
            if not path.endswith(".safetensors") or not wanted or wanted[1] - wanted[0] < 1000:
                return Fault(status=503, headers={"Retry-After": "1"}) if count == 1 else None
            return {0: Fault(cut=500), 7: Fault(cut=0), 13: Fault(status=500), 21: Fault(shift=1),
                    34: Fault(status=429, headers={"Retry-After": "1"})}.get(next(retried))
        server = self.serve(faults)
        running = self.start(server.url + "/tiny")
        self.check_rows(running)
        for reason, count in {"connection": 2, "server_error": 1, "busy": 2, "wrong_range": 1}.items():
            self.assertEqual(self.metric(running, "engram_table_http_failures_total", reason=reason), count, reason)
        self.assertEqual(self.metric(running, "engram_table_http_retries_total"), 6)

    def test_refusals_say_why(self):
        def status(code):
            return lambda path, wanted, count: Fault(status=code) if path.endswith(".safetensors") else None
        for code, text in {401: "token", 403: "forbidden", 404: "404"}.items():
            server = self.serve(status(code))
            self.assertIn(text, self.refused(server.url + "/tiny"))
            self.assertEqual(len(self.data_requests(server)), 1)
        server = self.serve(lambda path, wanted, count: Fault(whole=True))
        self.assertIn("ignores ranges", self.refused(server.url + "/tiny"))
        self.assertLess(server.sent_bytes, 4 << 20)
        self.assertIn("--manifest", self.refused(self.serve().url + "/nowhere"))

    def test_the_manifest_may_lie_elsewhere(self):
        elsewhere = self.scratch / "m.json"
        (self.checkpoint / "engram_manifest.json").rename(elsewhere)
        self.addCleanup(elsewhere.rename, self.checkpoint / "engram_manifest.json")
        server = self.serve()
        self.check_rows(self.start(server.url + "/tiny", server_args=["--manifest", elsewhere]))
        self.assertNotIn("/tiny/engram_manifest.json", [r[0] for r in server.requests])

    def test_damaged_data_is_not_served(self):
        server = self.serve(lambda path, wanted, count:
                            Fault(shift=1, headers={"Content-Range": "bytes %d-%d/%d" % (
                                wanted[0], wanted[1] - 1, (self.scratch / path[1:]).stat().st_size)})
                            if wanted and wanted[1] - wanted[0] > 1000 and wanted[0] > 100000 else None)
        self.assertIn("digest", self.refused(server.url + "/tiny"))

    def test_token_and_redirect_to_another_server(self):
        token = self.scratch / "token"
        token.write_text("first-token\n")
        token.chmod(0o600)
        store = self.serve()

        def faults(path, wanted, count):
            if path.endswith(".json"):
                return None
            return Fault(status=302, headers={"Location": store.url + path})
        hub = self.serve(faults)
        running = self.start(hub.url + "/tiny", server_args=["--token-file", token])
        self.check_rows(running)
        self.assertEqual({headers.get("Authorization") for _, _, headers in hub.requests}, {"Bearer first-token"})
        self.assertEqual({headers.get("Authorization") for _, _, headers in store.requests}, {None})
        log = running.servers["t0"].log()
        self.assertNotIn("first-token", log)
        self.assertNotIn("can be read by everybody", log)
        text = self.refused("http://192.0.2.1/tiny", "--token-file", token)
        self.assertIn("plain http", text)
        self.assertNotIn("first-token", text)

    def test_tls_with_its_own_ca(self):
        certificate = make_certificate(self.scratch / "tls")
        server = self.serve(certificate=certificate)
        self.check_rows(self.start(server.url + "/tiny", server_args=["--ca-file", certificate[0]]))
        self.assertIn("certificate", self.refused(server.url + "/tiny"))
        plain = self.serve()
        downgrade = self.serve(lambda path, wanted, count: Fault(status=302, headers={"Location": plain.url + path}),
                               certificate=certificate)
        self.assertIn("http", self.refused(downgrade.url + "/tiny", "--ca-file", certificate[0]))
        self.assertEqual(plain.requests, [])
        self.assertIn("none.pem", self.refused(server.url + "/tiny", "--ca-file", self.scratch / "none.pem"))

    def test_stops_at_once_while_nothing_comes(self):
        stuck = threading.Event()

        def faults(path, wanted, count):
            if wanted and wanted[1] - wanted[0] > 1000 and wanted[0] > 100000:
                stuck.set()
                return Fault(cut=100, hold=True)
            return None
        server = self.serve(faults)
        running = cluster.Cluster(server.url + "/tiny", server_args=["--hand-over-seconds", "0"])
        self.addCleanup(running.__exit__)
        process = running.start_server("t0")
        process.expect("listening on ")
        self.assertTrue(stuck.wait(SECONDS))
        began = time.monotonic()
        process.process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.log())
        self.assertLess(time.monotonic() - began, 10)  # a stall alone takes 20 s


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""From start to drain: health, readiness, reflection, metrics, SIGTERM under load."""
import pathlib
import signal
import threading
import time
import unittest

import grpc

import admin
import cluster
import health
from engram.v1 import table_pb2, table_pb2_grpc

SECONDS = 30


class LifeCycleTest(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(cluster.temporary_directory())
        self.checkpoint = cluster.copy_golden_checkpoint("tiny", self.scratch)

    def test_table_server(self):
        running = self.enterContext(cluster.Cluster(
            self.checkpoint, server_args=["--admin", "127.0.0.1:0", "--drain-seconds", "1"]))
        channel = grpc.insecure_channel(running.address("t0"))
        self.addCleanup(channel.close)
        stub = table_pb2_grpc.TableServiceStub(channel)
        self.assertEqual(health.check(channel), health.SERVING)
        self.assertEqual(health.check(channel, "engram.v1.TableService"), health.SERVING)
        reflect = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                        request_serializer=lambda b: b, response_deserializer=lambda b: b)
        self.assertIn(b"engram.v1.TableService", next(reflect(iter([b"\x3a\x00"]), timeout=SECONDS)))

        info = stub.GetTable(table_pb2.GetTableRequest(), timeout=SECONDS)
        request = table_pb2.GatherRequest(layers=[table_pb2.LayerRows(layer_id=1, row_ids=[1, 2, 3, 3])])
        stub.Gather(request, timeout=SECONDS)
        with self.assertRaises(grpc.RpcError):
            stub.Gather(table_pb2.GatherRequest(layers=[table_pb2.LayerRows(layer_id=2)]), timeout=SECONDS)
        address = admin.address(running.servers["t0"])
        self.assertEqual(admin.get(address, "/healthz")[0], 200)
        self.assertEqual(admin.get(address, "/readyz")[0], 200)
        status, text = admin.get(address, "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(admin.metric(text, "engram_table_rows_total"), 4)
        self.assertEqual(admin.metric(text, "engram_table_row_bytes_total"), 4 * info.row_format.row_bytes)
        self.assertEqual(admin.metric(text, "engram_table_calls_total", method="Gather", code="OK"), 1)
        self.assertEqual(admin.metric(text, "engram_table_calls_total", method="Gather", code="NOT_FOUND"), 1)
        self.assertEqual(admin.metric(text, "engram_table_partitions_ready"),
                         admin.metric(text, "engram_table_partitions_owned"))
        self.assertGreater(admin.metric(text, "engram_table_gather_seconds_count"), 0)
        self.assertEqual(admin.metric(text, "engram_build_info"), 1)

    def test_no_thread_but_those_of_the_queues_waits_for_the_network(self):
        running = self.enterContext(cluster.Cluster(self.checkpoint))
        channel = grpc.insecure_channel(running.address("t0"))
        self.addCleanup(channel.close)
        self.assertEqual(health.check(channel), health.SERVING)
        table_pb2_grpc.TableServiceStub(channel).GetTable(table_pb2.GetTableRequest(), timeout=SECONDS)
        names = set()
        for thread in pathlib.Path("/proc/%d/task" % running.servers["t0"].process.pid).iterdir():
            names.add((thread / "comm").read_text().strip())
        # Of gRPC's callbacks and of its services with a thread for each call.
        self.assertFalse(names & {"nexting_thread", "grpcpp_sync_ser"}, names)

    def test_drain_lets_calls_end(self):
        running = self.enterContext(cluster.Cluster(self.checkpoint, server_args=["--drain-seconds", "2"]))
        channel = grpc.insecure_channel(running.address("t0"))
        self.addCleanup(channel.close)
        stub = table_pb2_grpc.TableServiceStub(channel)
        watch = stub.WatchPartitions(table_pb2.WatchPartitionsRequest(), timeout=SECONDS)
        self.assertFalse(next(watch).snapshot.draining)
        request = table_pb2.GatherRequest(layers=[table_pb2.LayerRows(layer_id=1, row_ids=list(range(2000)))])
        outcomes = []
        stop, answered = threading.Event(), threading.Event()

        def load():
            while not stop.is_set():
                try:
                    stub.Gather(request, timeout=SECONDS)
                    outcomes.append("ok")
                    answered.set()
                except grpc.RpcError as error:
                    outcomes.append(error.code())
                    return
        thread = threading.Thread(target=load)
        thread.start()
        self.assertTrue(answered.wait(SECONDS))
        running.servers["t0"].terminate()
        self.assertTrue(any(message.delta.draining for message in watch))
        self.assertEqual(running.servers["t0"].wait(), 0, running.servers["t0"].log())
        stop.set()
        thread.join()
        self.assertIn("ok", outcomes)
        # gRPC cancels a call that crosses the server's goodbye on the wire.
        self.assertLessEqual(set(outcomes), {"ok", grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})

    def test_worker_drains_and_waits_for_tables(self):
        running = cluster.Cluster(self.checkpoint, servers=2)
        self.addCleanup(running.__exit__)
        worker = running.start_worker("w0", "--admin", "127.0.0.1:0")
        worker.expect("listening on")
        channel = grpc.insecure_channel(running.address("w0"))
        self.addCleanup(channel.close)
        self.assertEqual(health.check(channel), health.NOT_SERVING)
        self.assertEqual(admin.get(admin.address(worker), "/readyz")[0], 503)
        for name in running.names:
            running.start_server(name).expect("ready")
        worker.expect("ready")
        self.assertEqual(health.check(channel), health.SERVING)
        self.assertEqual(admin.get(admin.address(worker), "/readyz")[0], 200)
        worker.terminate()
        self.assertEqual(worker.wait(), 0, worker.log())

    def test_stopped_with_the_keyboard(self):
        running = self.enterContext(cluster.Cluster(self.checkpoint, server_args=["--drain-seconds", "0"]))
        began = time.monotonic()
        running.servers["t0"].process.send_signal(signal.SIGINT)
        self.assertEqual(running.servers["t0"].wait(), 0)
        self.assertLess(time.monotonic() - began, 20)

    def test_status(self):
        running = self.enterContext(cluster.Cluster(self.checkpoint, servers=3, replicas=2, workers=1))
        text = cluster.engramctl("status", "--tables", running.tables, "--worker", running.worker_addresses).stdout
        for name in running.names:
            self.assertIn(name, text)
        running.servers["t1"].stop()
        partly = cluster.engramctl("status", "--tables", running.tables)
        self.assertIn("unreachable", partly.stdout)
        running.servers["t2"].stop()
        self.assertEqual(cluster.engramctl("status", "--tables", running.tables, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

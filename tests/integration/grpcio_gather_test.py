"""A client in another language, generated from the protos alone: unary and streamed gathers,
routing by WatchPartitions, every row compared with the checkpoint file."""
import random
import struct
import unittest

import grpc
import numpy as np

import cluster
import engram_oracle as oracle
from engram.v1 import errors_pb2, table_pb2, table_pb2_grpc
from google.rpc import error_details_pb2, status_pb2

SECONDS = 30


def crc32c(data):
    table = crc32c.table
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc_table():
    out = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        out.append(value)
    return out


crc32c.table = crc_table()


def details_of(error):
    """ErrorInfo reason and the other details of a failed call."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    return details_of_status(status)


def details_of_status(status):
    info, others = error_details_pb2.ErrorInfo(), []
    for detail in status.details:
        if detail.type_url.endswith("google.rpc.ErrorInfo"):
            info.ParseFromString(detail.value)
        else:
            others.append(detail)
    return info, others


class GrpcioGatherTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = cls.enterClassContext(cluster.temporary_directory())
        cls.checkpoint = cluster.copy_golden_checkpoint("tiny", scratch)
        _, tensors, _ = oracle.load_checkpoint(cls.checkpoint)
        cls.packed = {layer: np.concatenate([tensors["layers.%d.engram.embed.weight" % layer],
                                             tensors["layers.%d.engram.embed.scale" % layer]], -1)
                      for layer in (1, 14)}
        cls.running = cls.enterClassContext(cluster.Cluster(cls.checkpoint, servers=3, replicas=2))
        cls.stubs = {}
        for name in cls.running.names:
            channel = grpc.insecure_channel(cls.running.address(name))
            cls.addClassCleanup(channel.close)
            cls.stubs[name] = table_pb2_grpc.TableServiceStub(channel)
        cls.info = cls.stubs["t0"].GetTable(table_pb2.GetTableRequest(), timeout=SECONDS)
        cls.held = {name: cls.snapshot(stub) for name, stub in cls.stubs.items()}

    @classmethod
    def snapshot(cls, stub):
        watch = stub.WatchPartitions(table_pb2.WatchPartitionsRequest(), timeout=SECONDS)
        snapshot = next(watch).snapshot
        watch.cancel()
        return {layer.layer_id: np.unpackbits(np.frombuffer(layer.bitmap, np.uint8), bitorder="little")
                [:layer.partition_count].astype(bool) for layer in snapshot.layers}

    def request(self, layer_ids, **more):
        return table_pb2.GatherRequest(
            version=self.info.version,
            layers=[table_pb2.LayerRows(layer_id=layer, row_ids=ids) for layer, ids in layer_ids.items()], **more)

    def wanted(self, layer_ids):
        return b"".join(self.packed[layer][ids].tobytes() for layer, ids in layer_ids.items())

    def random_ids(self, rng, name, count):
        """Row ids of both layers that server `name` holds, with repeats."""
        out = {}
        for layer, bits in self.held[name].items():
            partitions, rows = np.flatnonzero(bits), self.info.partition_rows
            starts = [int(rng.choice(partitions)) * rows for _ in range(count)]
            out[layer] = [rng.randrange(start, min(start + rows, len(self.packed[layer]))) for start in starts]
        return out

    def test_every_partition_has_two_holders(self):
        for layer, rows in ((1, 25874), (14, 30058)):
            count = sum(held[layer].astype(int) for held in self.held.values())
            self.assertTrue((count == 2).all())
            self.assertEqual(len(count), -(-rows // self.info.partition_rows))

    def test_a_thousand_random_gathers(self):
        rng = random.Random(5)
        for i in range(1000):
            name = rng.choice(list(self.stubs))
            ids = self.random_ids(rng, name, rng.choice((1, 7, 24, 300)))
            reply = self.stubs[name].Gather(self.request(ids), timeout=SECONDS)
            self.assertEqual(reply.version, self.info.version)
            self.assertEqual(reply.rows, self.wanted(ids), "request %d" % i)

    def test_checksum(self):
        ids = self.random_ids(random.Random(6), "t1", 40)
        reply = self.stubs["t1"].Gather(self.request(ids, want_crc32c=True), timeout=SECONDS)
        data = self.info.version.encode()
        for layer, rows in ids.items():
            data += struct.pack("<I%dI" % len(rows), layer, *rows)
        self.assertEqual(reply.crc32c, crc32c(data + reply.rows))

    def test_stream_answers_in_pieces_and_survives_an_error(self):
        rng = random.Random(7)
        big = {14: [int(p) * self.info.partition_rows for p in np.flatnonzero(self.held["t2"][14])] * 400}
        small = self.random_ids(rng, "t2", 3)
        calls = [
            table_pb2.GatherStreamRequest(call_id=1, gather=self.request(big)),
            table_pb2.GatherStreamRequest(call_id=2, gather=self.request({1: [4294967295]})),
            table_pb2.GatherStreamRequest(call_id=3, gather=self.request(small)),
        ]
        rows, pieces, errors, open_calls = {1: b"", 3: b""}, {1: 0, 3: 0}, {}, {1, 2, 3}
        stream = self.stubs["t2"].GatherStream(iter(calls), timeout=SECONDS)
        for reply in stream:
            if reply.WhichOneof("kind") == "error":
                errors[reply.call_id] = reply.error
                open_calls.discard(reply.call_id)
            else:
                rows[reply.call_id] += reply.piece.rows
                pieces[reply.call_id] += 1
                if reply.piece.last:
                    self.assertEqual(reply.piece.version, self.info.version)
                    open_calls.discard(reply.call_id)
            if not open_calls:
                break
        stream.cancel()
        self.assertEqual(rows[1], self.wanted(big))
        self.assertEqual(rows[3], self.wanted(small))
        self.assertGreater(pieces[1], 1)
        self.assertEqual(details_of_status(errors[2])[0].reason, "ROW_OUT_OF_RANGE")

    def failure(self, name, request):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stubs[name].Gather(request, timeout=SECONDS)
        return caught.exception

    def test_errors_say_what_is_wrong(self):
        missing = {layer: [int(p) * self.info.partition_rows for p in np.flatnonzero(~bits)]
                   for layer, bits in self.held["t0"].items()}
        error = self.failure("t0", self.request(missing))
        info, others = details_of(error)
        self.assertEqual((error.code(), info.reason, info.domain),
                         (grpc.StatusCode.UNAVAILABLE, "PARTITION_NOT_HERE", "engram.v1"))
        listed = errors_pb2.PartitionNotHere.FromString(others[0].value)
        for layer in listed.missing:
            bits = np.unpackbits(np.frombuffer(layer.bitmap, np.uint8), bitorder="little")[:layer.partition_count]
            self.assertTrue(np.array_equal(bits.astype(bool), ~self.held["t0"][layer.layer_id]))

        cases = [
            (self.request({1: [25874]}), grpc.StatusCode.OUT_OF_RANGE, "ROW_OUT_OF_RANGE", "25874"),
            (self.request({3: [0]}), grpc.StatusCode.NOT_FOUND, "UNKNOWN_LAYER", "3"),
            (table_pb2.GatherRequest(version="0" * 64), grpc.StatusCode.FAILED_PRECONDITION, "WRONG_TABLE", "0" * 64),
            (self.request({1: [0] * (self.info.max_rows_per_gather + 1)}), grpc.StatusCode.INVALID_ARGUMENT,
             "TOO_LARGE", str(self.info.max_rows_per_gather)),
        ]
        for request, code, reason, text in cases:
            error = self.failure("t0", request)
            self.assertEqual((error.code(), details_of(error)[0].reason), (code, reason))
            self.assertIn(text, error.details())

    def test_partitions_come_whole_and_from_an_offset(self):
        stub, rows = self.stubs["t0"], self.info.partition_rows
        for layer, bits in self.held["t0"].items():
            for partition in np.flatnonzero(bits)[:20]:
                wanted = self.packed[layer][partition * rows:(partition + 1) * rows].tobytes()
                for offset in (0, 3 * self.info.row_format.row_bytes):
                    request = table_pb2.FetchPartitionRequest(
                        version=self.info.version, layer_id=layer, partition=int(partition), offset_bytes=offset)
                    pieces = [piece.rows for piece in self.fetch(stub, request)]
                    self.assertEqual(b"".join(pieces), wanted[offset:])

    def fetch(self, stub, request):
        """A busy server says so, as it may when the fetch before has only just ended."""
        for _ in range(100):
            try:
                return list(stub.FetchPartition(request, timeout=SECONDS))
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
        self.fail("busy a hundred times")

    def test_exchange_tells_what_a_server_holds(self):
        for name, stub in self.stubs.items():
            reply = stub.Exchange(table_pb2.ExchangeRequest(), timeout=SECONDS)
            self.assertEqual((reply.server_name, reply.version, reply.ready), (name, self.info.version, True))
            for layer in reply.held:
                bits = np.unpackbits(np.frombuffer(layer.bitmap, np.uint8), bitorder="little")[:layer.partition_count]
                self.assertTrue(np.array_equal(bits.astype(bool), self.held[name][layer.layer_id]))

    def test_cancelled_and_expired_calls_leave_the_server_well(self):
        ids = self.random_ids(random.Random(8), "t1", 3000)
        for i in range(200):
            call = self.stubs["t1"].Gather.future(self.request(ids), timeout=0.0005 if i % 2 else SECONDS)
            call.cancel() if i % 2 == 0 else call.exception()
        reply = self.stubs["t1"].Gather(self.request(ids), timeout=SECONDS)
        self.assertEqual(reply.rows, self.wanted(ids))


if __name__ == "__main__":
    unittest.main(verbosity=2)

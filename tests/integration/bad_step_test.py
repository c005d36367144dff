"""Steps that break the contract: a clear error each, and the worker and its streams live on."""
import queue
import unittest

import grpc

import cluster
from engram.v1 import compute_pb2, compute_pb2_grpc
from grpcio_gather_test import details_of, details_of_status

SECONDS = 30
TOKENS = [5, 6, 7, 8]


class BadStepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = cls.enterClassContext(cluster.temporary_directory())
        checkpoint = cluster.copy_golden_checkpoint("tiny", scratch)
        cls.running = cls.enterClassContext(cluster.Cluster(checkpoint, servers=2, replicas=1, workers=1))
        channel = grpc.insecure_channel(cls.running.address("w0"),
                                        options=[("grpc.max_send_message_length", -1),
                                                 ("grpc.max_receive_message_length", -1)])
        cls.addClassCleanup(channel.close)
        cls.stub = compute_pb2_grpc.ComputeServiceStub(channel)
        cls.model = cls.stub.GetModel(compute_pb2.GetModelRequest(), timeout=SECONDS)
        cls.token_bytes = cls.model.hc_mult * cls.model.dim * 2

    def streams(self, tokens=len(TOKENS)):
        return b"\x80\x3f" * (tokens * self.token_bytes // 2)

    def request(self, **changes):
        sequence = dict(start_position=0, token_ids=TOKENS)
        sequence.update(changes.pop("sequence", {}))
        fields = dict(version=self.model.version, sequences=[compute_pb2.Sequence(**sequence)],
                      dtype=compute_pb2.STREAM_DTYPE_BF16, return_kind=compute_pb2.RETURN_KIND_STREAMS,
                      layers=[compute_pb2.LayerStreams(layer_id=1, streams=self.streams())])
        fields.update(changes)
        return compute_pb2.ApplyRequest(**fields)

    def apply_fails(self, code, *texts, reason="", **changes):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Apply(self.request(**changes), timeout=SECONDS)
        error = caught.exception
        self.assertEqual((error.code(), details_of(error)[0].reason), (code, reason), error.details())
        for text in texts:
            self.assertIn(text, error.details())

    def setUp(self):
        self.good = self.stub.Apply(self.request(), timeout=SECONDS)

    def tearDown(self):
        again = self.stub.Apply(self.request(), timeout=SECONDS)
        self.assertEqual(again, self.good)

    def test_bad_tokens(self):
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        self.apply_fails(invalid, "512", sequence=dict(token_ids=[5, 6, 512, 8]))
        self.apply_fails(invalid, "2", "3", sequence=dict(start_position=9, lookback=[1, 2]))
        self.apply_fails(invalid, "4", "3", sequence=dict(start_position=9, lookback=[1, 2, 3, 4]))
        self.apply_fails(invalid, "1", "0", sequence=dict(start_position=0, lookback=[1]))
        self.apply_fails(invalid, "600", sequence=dict(start_position=1, lookback=[600]))
        self.apply_fails(invalid, "mask", sequence=dict(mask=[True] * 3))
        self.apply_fails(invalid, "mask", sequence=dict(start_position=1, lookback=[1], lookback_mask=[True] * 2))

    def test_token_ids_at_dead_positions_are_ignored(self):
        mask = [True, True, False, True]
        one = self.stub.Apply(self.request(sequence=dict(mask=mask)), timeout=SECONDS)
        two = self.stub.Apply(self.request(sequence=dict(mask=mask, token_ids=[5, 6, 4294967295, 8])), timeout=SECONDS)
        self.assertEqual(one, two)

    def test_bad_streams(self):
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        for size in (0, self.token_bytes * 4 - 1, self.token_bytes * 5):
            self.apply_fails(invalid, str(size), str(self.token_bytes * 4),
                             layers=[compute_pb2.LayerStreams(layer_id=1, streams=b"\0" * size)])
        self.apply_fails(invalid, "dtype", dtype=compute_pb2.STREAM_DTYPE_UNSPECIFIED)
        self.apply_fails(invalid, "return", return_kind=compute_pb2.RETURN_KIND_UNSPECIFIED)
        self.apply_fails(invalid, "1", layers=[compute_pb2.LayerStreams(layer_id=1, streams=self.streams())] * 2)

    def test_wrong_names(self):
        self.apply_fails(grpc.StatusCode.NOT_FOUND, "3", reason="UNKNOWN_LAYER",
                         layers=[compute_pb2.LayerStreams(layer_id=3, streams=self.streams())])
        self.apply_fails(grpc.StatusCode.FAILED_PRECONDITION, "0" * 64, self.model.version, reason="WRONG_TABLE",
                         version="0" * 64)

    def test_too_many_tokens(self):
        limit = self.model.max_tokens_per_step
        self.apply_fails(grpc.StatusCode.INVALID_ARGUMENT, str(limit), reason="TOO_LARGE",
                         sequence=dict(token_ids=[1] * (limit + 1)))

    def test_message_over_the_limit(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Apply(self.request(layers=[compute_pb2.LayerStreams(
                layer_id=1, streams=b"\0" * (80 << 20))]), timeout=SECONDS)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_failed_steps_leave_the_stream_alive(self):
        requests = queue.Queue()
        replies = self.stub.Forward(iter(requests.get, None), timeout=SECONDS)

        def begin(step, **changes):
            fields = dict(dtype=compute_pb2.STREAM_DTYPE_BF16, return_kind=compute_pb2.RETURN_KIND_STREAMS,
                          sequences=[compute_pb2.Sequence(token_ids=TOKENS)], layer_ids=[1])
            fields.update(changes)
            requests.put(compute_pb2.ForwardRequest(step_id=step, begin=compute_pb2.StepBegin(**fields)))

        def layer(step, first=0, tokens=len(TOKENS), layer_id=1):
            requests.put(compute_pb2.ForwardRequest(step_id=step, layer=compute_pb2.StepLayer(
                layer_id=layer_id, first_token=first, streams=self.streams(tokens))))

        def end_of(step):
            results = []
            for reply in replies:
                if reply.step_id != step:
                    continue
                if reply.WhichOneof("kind") == "end":
                    return results, reply.end.status
                results.append(reply.result)
            self.fail("the stream ended before step %d" % step)

        begin(1, version="f" * 64)
        self.assertEqual(details_of_status(end_of(1)[1])[0].reason, "WRONG_TABLE")
        begin(2, sequences=[compute_pb2.Sequence(token_ids=[9999])])
        self.assertIn("9999", end_of(2)[1].message)
        begin(3)
        layer(3, first=0, tokens=2)
        layer(3, first=1, tokens=2)
        self.assertIn("1", end_of(3)[1].message)
        begin(4)
        layer(4, first=3, tokens=2)
        self.assertEqual(end_of(4)[1].code, grpc.StatusCode.INVALID_ARGUMENT.value[0])
        layer(99)
        self.assertIn("99", end_of(99)[1].message)
        begin(5)
        requests.put(compute_pb2.ForwardRequest(step_id=5, cancel=compute_pb2.StepCancel()))
        self.assertEqual(end_of(5)[1].code, grpc.StatusCode.CANCELLED.value[0])
        begin(6, timeout_us=20000)  # its streams never come
        self.assertEqual(end_of(6)[1].code, grpc.StatusCode.DEADLINE_EXCEEDED.value[0])
        begin(7)
        layer(7, first=2, tokens=2)
        layer(7, first=0, tokens=2)
        results, status = end_of(7)
        self.assertEqual(status.code, 0)
        results.sort(key=lambda result: result.first_token)
        self.assertEqual(b"".join(r.result.streams for r in results), self.good.layers[0].streams)
        requests.put(None)
        self.assertEqual(list(replies), [])

    def test_a_client_that_leaves_in_the_middle(self):
        for _ in range(20):
            requests = queue.Queue()
            replies = self.stub.Forward(iter(requests.get, None), timeout=SECONDS)
            requests.put(compute_pb2.ForwardRequest(step_id=1, begin=compute_pb2.StepBegin(
                dtype=compute_pb2.STREAM_DTYPE_BF16, return_kind=compute_pb2.RETURN_KIND_STREAMS,
                sequences=[compute_pb2.Sequence(token_ids=TOKENS)])))
            replies.cancel()
            requests.put(None)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""What table servers say of their cluster, by Exchange."""
import contextlib

import grpc

from engram.v1 import table_pb2, table_pb2_grpc

CALL_SECONDS = 10


@contextlib.contextmanager
def calls(address):
    # A connection of its own, which waits for no other that failed.
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield table_pb2_grpc.TableServiceStub(channel)


def ask(address):
    with calls(address) as stub:
        return stub.Exchange(table_pb2.ExchangeRequest(), timeout=CALL_SECONDS)


def leave(address, name):
    with calls(address) as stub:
        stub.Leave(table_pb2.LeaveRequest(server_name=name), timeout=CALL_SECONDS)


def holders(states):
    """How many servers hold each partition: (layer, partition) -> count."""
    counts = {}
    for state in states.values():
        for layer in state.held:
            for partition in range(layer.partition_count):
                key = layer.layer_id, partition
                bit = layer.bitmap[partition // 8] >> partition % 8 & 1
                counts[key] = counts.get(key, 0) + bit
    return counts


def held_count(state):
    return sum(bin(byte).count("1") for layer in state.held for byte in layer.bitmap)


def why_not_settled(states, replicas):
    """Empty: all see the same members, which are all of `states`, and each holds just what it owns."""
    for name, state in states.items():
        seen = [member.name for member in state.members]
        if sorted(states) != seen:
            return "%s sees %s of %s; %s" % (name, seen, sorted(states), state.moves.waiting_for)
        moves = state.moves
        if moves.to_load or moves.to_free or moves.lingering:
            return "%s: %s" % (name, str(moves).replace("\n", " "))
    digests = {state.view_digest for state in states.values()}
    if len(digests) != 1:
        return "%d views: %s" % (len(digests), digests)
    held = holders(states)
    wanted = min(replicas, len(states))
    odd = sum(count != wanted for count in held.values())
    return "%d of %d partitions are held by other than %d servers" % (odd, len(held), wanted) if odd else ""

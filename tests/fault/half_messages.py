"""Clients of the rudest kind: they connect, send half of something and die."""
import socket
import struct

METHOD = b"/engram.v1.TableService/GatherStream"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4
SECONDS = 30


def frame(kind, flags, stream, payload, declared_bytes=None):
    size = len(payload) if declared_bytes is None else declared_bytes
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(index, value, name=b""):
    """An HPACK header field without indexing; `index` is of the static table, 0: `name`."""
    first = bytes([index]) if index < 15 else bytes([15, index - 15])
    return first + (bytes([len(name)]) + name if index == 0 else b"") + bytes([len(value)]) + value


def call_headers(method):
    post_http = b"\x83\x86"
    return (post_http + literal(4, method) + literal(1, b"test") + literal(31, b"application/grpc") +
            literal(0, b"trailers", b"te"))


def grpc_message(payload):
    return b"\0" + struct.pack(">I", len(payload)) + payload


def beginnings():
    """What a client may have said when it dies."""
    opened = PREFACE + frame(SETTINGS, 0, 0, b"")
    called = opened + frame(HEADERS, END_HEADERS, 1, call_headers(METHOD))
    message = grpc_message(b"\x12\x40" + bytes(64))  # a gather of 64 bytes, never to be whole
    large = grpc_message(bytes(1 << 20))[:8192]
    return [
        PREFACE[:11],
        opened[:-4],
        called[:-10],
        called + frame(DATA, 0, 1, message[:20]),  # a message that a frame may still end
        called + frame(DATA, 0, 1, message[:20], declared_bytes=len(message)),  # half a frame
        called + frame(DATA, 0, 1, large),
    ]


def attack(address, clients, at_a_time=250):
    """Has `clients` of them live and die at `address` (unix:PATH), so many at a time; every other
    one dies without a goodbye."""
    says = beginnings()
    abort = struct.pack("ii", 1, 0)
    for first in range(0, clients, at_a_time):
        alive = []
        for i in range(first, min(clients, first + at_a_time)):
            sock = socket.socket(socket.AF_UNIX)
            # Blocking with a bound: a full backlog is waited for.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SECONDS, 0))
            sock.connect(address.removeprefix("unix:"))
            sock.sendall(says[i % len(says)])
            if i % 2:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort)
            alive.append(sock)
        for sock in alive:
            sock.close()

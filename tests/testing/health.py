"""grpc.health.v1 without its stubs."""
SECONDS = 60
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"  # HealthCheckResponse


def check(channel, service=""):
    call = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda b: b,
                               response_deserializer=lambda b: b)
    return call(b"\x0a" + bytes([len(service)]) + service.encode() if service else b"", timeout=SECONDS)

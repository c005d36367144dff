"""The two comparisons that a result must pass against a golden vector."""
import numpy as np

import engram_oracle as oracle


def streams_as_float(array):
    return oracle.from_bf16_bits(array) if array.dtype == np.uint16 else array


def ulp(values, dtype):
    """Distance to the next value of the streams' dtype, at the size of `values`."""
    bits = 8 if dtype == np.uint16 else 24
    exponent = np.floor(np.log2(np.maximum(np.abs(values.astype(np.float64)), 2.0 ** -126)))
    return np.exp2(exponent - (bits - 1))


def kv_mismatch(kv, wanted):
    """Bits of bf16 [tokens, n]. Empty text if kv is close enough."""
    got, want = oracle.from_bf16_bits(kv).astype(np.float64), oracle.from_bf16_bits(wanted).astype(np.float64)
    allowed = np.maximum(ulp(want, np.uint16), 1e-5 * np.abs(want).max(-1, keepdims=True))
    worst = (np.abs(got - want) / allowed).max()
    equal = (kv == wanted).mean()
    if worst > 1.0 or equal < 0.995:
        return "kv: worst error %.3g of the allowed, %.4f equal" % (worst, equal)
    return ""


def streams_mismatch(out, golden, layer):
    """streams_out against a golden: ulp(out) + gate * ulp(value) + |d gate * value|."""
    prefix = "layers.%d." % layer
    wanted = golden[prefix + "streams_out"]
    dim, hc = wanted.shape[-1], wanted.shape[-2]
    value = oracle.from_bf16_bits(golden[prefix + "kv"])[..., hc * dim:].astype(np.float64)[..., None, :]
    gate = golden[prefix + "gate"].astype(np.float64)[..., None]
    want = streams_as_float(wanted).astype(np.float64)
    got = streams_as_float(out).astype(np.float64)
    allowed = ulp(want, wanted.dtype) + gate * ulp(value, np.uint16) + np.abs(5e-4 * value)
    worst = (np.abs(got - want) / allowed).max()
    dead = ~golden["mask"]
    if not np.array_equal(out[dead], golden[prefix + "streams_in"][dead]):
        return "layer %d: dead positions did not come back bit for bit" % layer
    return "" if worst <= 1.0 else "layer %d: streams off by %.3g of the allowed" % (layer, worst)

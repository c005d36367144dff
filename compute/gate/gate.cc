#include "compute/gate/gate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "compute/gate/gate_core.h"
#include "compute/gate/gate_loops.h"
#include "core/base/check.h"

namespace engram {
namespace {

// Sizes of one token, and the number of tokens that all spans must agree on.
struct Shape {
  Shape(const GateWeights& weights, StreamDtype dtype, size_t streams_bytes)
      : stream_bytes(size_t{weights.dim} * StreamBytes(dtype)),
        token_bytes(weights.hc_mult * stream_bytes),
        kv_width(size_t{weights.hc_mult + 1} * weights.dim),
        tokens(streams_bytes / token_bytes) {
    ENGRAM_CHECK(weights.weight.size() ==
                 size_t{weights.hc_mult} * weights.dim);
    ENGRAM_CHECK(streams_bytes == tokens * token_bytes);
  }

  size_t stream_bytes;
  size_t token_bytes;
  size_t kv_width;
  size_t tokens;
};

}  // namespace

void ComputeGate(const GateWeights& weights, StreamDtype dtype,
                 absl::Span<const std::byte> streams,
                 absl::Span<const uint16_t> kv, absl::Span<const uint8_t> mask,
                 absl::Span<float> gate) {
  const Shape shape(weights, dtype, streams.size());
  ENGRAM_CHECK(kv.size() == shape.tokens * shape.kv_width);
  ENGRAM_CHECK(mask.empty() || mask.size() == shape.tokens);
  ENGRAM_CHECK(gate.size() == shape.tokens * weights.hc_mult);
  const float inverse_sqrt_dim = InverseSqrtDim(weights.dim);
  for (size_t m = 0; m < shape.tokens; ++m) {
    float* const out = gate.data() + m * weights.hc_mult;
    if (!mask.empty() && mask[m] == 0) {
      std::fill_n(out, weights.hc_mult, 0.0F);
      continue;
    }
    const std::byte* const token = streams.data() + m * shape.token_bytes;
    const uint16_t* const keys = kv.data() + m * shape.kv_width;
    for (size_t s = 0; s < weights.hc_mult; ++s) {
      const size_t at = s * weights.dim;
      out[s] =
          GateFromSums(SumStream(dtype, token + s * shape.stream_bytes,
                                 &weights.weight[at], keys + at, weights.dim),
                       weights.dim, weights.norm_eps, inverse_sqrt_dim);
    }
  }
}

void AddContribution(const GateWeights& weights, StreamDtype dtype,
                     absl::Span<const std::byte> streams,
                     absl::Span<const uint16_t> kv,
                     absl::Span<const float> gate,
                     absl::Span<const uint8_t> mask,
                     absl::Span<std::byte> out) {
  const Shape shape(weights, dtype, streams.size());
  ENGRAM_CHECK(kv.size() == shape.tokens * shape.kv_width);
  ENGRAM_CHECK(mask.empty() || mask.size() == shape.tokens);
  ENGRAM_CHECK(gate.size() == shape.tokens * weights.hc_mult);
  ENGRAM_CHECK(out.size() == streams.size());
  for (size_t m = 0; m < shape.tokens; ++m) {
    const std::byte* const from = streams.data() + m * shape.token_bytes;
    std::byte* const to = out.data() + m * shape.token_bytes;
    if (!mask.empty() && mask[m] == 0) {
      std::memmove(to, from, shape.token_bytes);
      continue;
    }
    const uint16_t* const value =
        kv.data() + m * shape.kv_width + size_t{weights.hc_mult} * weights.dim;
    for (size_t s = 0; s < weights.hc_mult; ++s) {
      const size_t at = s * shape.stream_bytes;
      AddStream(dtype, from + at, gate[m * weights.hc_mult + s], value,
                weights.dim, to + at);
    }
  }
}

}  // namespace engram

#ifndef ENGRAM_COMPUTE_GATE_GATE_H_
#define ENGRAM_COMPUTE_GATE_GATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compute/gate/stream_dtype.h"

namespace engram {

// Gate weights of one layer. `weight` is q_weight * k_weight in float32,
// [hc, dim]: the two are only ever used as a product.
struct GateWeights {
  uint32_t hc_mult = 0;
  uint32_t dim = 0;
  float norm_eps = 0;
  std::vector<float> weight;
};

// gate[m, s] for every live token and stream, after Engram.forward of
// DeepSeek-V4.1-Flash inference/model.py:
//   rstd = rsqrt(mean(h^2) + eps) * rsqrt(mean(key^2) + eps)
//   dot  = sum(h * weight * key) * rstd * dim^-0.5
//   gate = sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)), 0 where mask is 0.
// Products in float32, sums over dim in float64 in a fixed order.
//
// streams: [tokens, hc, dim] of `dtype`; kv: bf16 [tokens, dim * (hc + 1)],
// keys first, then the value; mask: one byte a token, empty: all live.
void ComputeGate(const GateWeights& weights, StreamDtype dtype,
                 absl::Span<const std::byte> streams,
                 absl::Span<const uint16_t> kv, absl::Span<const uint8_t> mask,
                 absl::Span<float> gate);

// out = round(h + fl32(gate * value)) in the dtype of the streams; dead tokens
// come back bit for bit. `out` may be `streams`.
void AddContribution(const GateWeights& weights, StreamDtype dtype,
                     absl::Span<const std::byte> streams,
                     absl::Span<const uint16_t> kv,
                     absl::Span<const float> gate,
                     absl::Span<const uint8_t> mask, absl::Span<std::byte> out);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_H_

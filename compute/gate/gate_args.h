#ifndef ENGRAM_COMPUTE_GATE_GATE_ARGS_H_
#define ENGRAM_COMPUTE_GATE_GATE_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "compute/gate/stream_dtype.h"

namespace engram {

// One launch of gate and add. All pointers are the device's.
struct GateArgs {
  StreamDtype dtype = StreamDtype::kBf16;
  uint32_t token_count = 0;
  uint32_t hc_mult = 0;
  uint32_t dim = 0;
  float norm_eps = 0;
  const std::byte* streams = nullptr;  // [tokens, hc, dim] of `dtype`
  // bf16 [live, (hc + 1) * dim]: of each live token the keys, then the value.
  const uint16_t* kv = nullptr;
  // [tokens]: the token's row of kv, -1 if it is dead. Null: row i for token i.
  const int32_t* live_index = nullptr;
  const float* weight = nullptr;  // [hc, dim], q_weight * k_weight

  // Null: not wanted.
  std::byte* out_streams = nullptr;  // as `streams`, and may be `streams`
  float* out_gate = nullptr;         // [tokens, hc]
  uint16_t* out_value = nullptr;     // bf16 [tokens, dim]
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_ARGS_H_

#ifndef ENGRAM_COMPUTE_GATE_GATE_DEAD_TOKEN_CUH_
#define ENGRAM_COMPUTE_GATE_GATE_DEAD_TOKEN_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "compute/gate/gate_args.h"
#include "compute/gate/gate_core.h"
#include "compute/gate/gate_shape.h"
#include "compute/gate/gate_words.cuh"
#include "core/gpu/ptx.cuh"

// What the gate's kernel does of a token without rows: streams as they came,
// gate and value +0.

namespace engram {

// `count` features as they are, or zeros where `from` is null, by one
// stream's threads. In batches, for no load is moved before a store.
template <uint32_t kWidth, typename Bits>
__device__ __forceinline__ void CopyFeatures(const Bits* from, uint32_t count,
                                             Bits* to) {
  using Word = GateWord<kWidth * sizeof(Bits)>;
  constexpr uint32_t kWords = 10;
  const uint32_t first = threadIdx.x % GateStreamThreads(kWidth) * kWidth;
#pragma unroll 1
  for (uint32_t i = first; i < count; i += kWords * kGateSums) {
    Word words[kWords] = {};
#pragma unroll
    for (uint32_t c = 0; c < kWords; ++c) {
      const uint32_t at = i + c * kGateSums;
      if (from != nullptr && at < count) {
        words[c] = gpu::LoadStreaming(AsWord<kWidth>(from + at));
      }
    }
#pragma unroll
    for (uint32_t c = 0; c < kWords; ++c) {
      const uint32_t at = i + c * kGateSums;
      if (at < count) gpu::StoreStreaming(AsWord<kWidth>(to + at), words[c]);
    }
  }
}

template <typename Stream, uint32_t kWidth>
__device__ __forceinline__ void StoreDeadToken(const GateArgs& args,
                                               uint32_t token, uint32_t stream,
                                               float* out_gate) {
  using Bits = typename Stream::Bits;
  const uint64_t at = (uint64_t{token} * args.hc_mult + stream) * args.dim;
  if (args.out_streams != nullptr && args.out_streams != args.streams) {
    CopyFeatures<kWidth>(reinterpret_cast<const Bits*>(args.streams) + at,
                         args.dim,
                         reinterpret_cast<Bits*>(args.out_streams) + at);
  }
  if (args.out_value != nullptr && stream == 0) {
    CopyFeatures<kWidth, uint16_t>(nullptr, args.dim,
                                   args.out_value + uint64_t{token} * args.dim);
  }
  if (out_gate != nullptr &&
      threadIdx.x < blockDim.x / GateStreamThreads(kWidth)) {
    out_gate[threadIdx.x] = 0;
  }
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_DEAD_TOKEN_CUH_

#ifndef ENGRAM_COMPUTE_GATE_GATE_WORDS_CUH_
#define ENGRAM_COMPUTE_GATE_GATE_WORDS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "core/gpu/ptx.cuh"
#include "core/model/number_formats.h"

// Neighbouring features as the words in which a thread reads and writes them.

namespace engram {

template <uint32_t kBytes>
struct GateWordOf;
template <>
struct GateWordOf<2> {
  using Type = uint16_t;
};
template <>
struct GateWordOf<4> {
  using Type = uint32_t;
};
template <>
struct GateWordOf<8> {
  using Type = uint2;
};
template <>
struct GateWordOf<16> {
  using Type = uint4;
};

template <uint32_t kBytes>
using GateWord = typename GateWordOf<kBytes>::Type;

// The word of kWidth values at `values`.
template <uint32_t kWidth, typename Bits>
__device__ __forceinline__ GateWord<kWidth * sizeof(Bits)>* AsWord(
    Bits* values) {
  return reinterpret_cast<GateWord<kWidth * sizeof(Bits)>*>(values);
}

template <uint32_t kWidth, typename Bits>
__device__ __forceinline__ const GateWord<kWidth * sizeof(Bits)>* AsWord(
    const Bits* values) {
  return reinterpret_cast<const GateWord<kWidth * sizeof(Bits)>*>(values);
}

struct Bf16Words {
  using Bits = uint16_t;

  __device__ __forceinline__ static void Unpack(uint2 word, float (&out)[4]) {
    out[0] = FloatFromBits(word.x << 16);
    out[1] = FloatFromBits(word.x & 0xFFFF0000);
    out[2] = FloatFromBits(word.y << 16);
    out[3] = FloatFromBits(word.y & 0xFFFF0000);
  }
  __device__ __forceinline__ static void Unpack(uint32_t word,
                                                float (&out)[2]) {
    out[0] = FloatFromBits(word << 16);
    out[1] = FloatFromBits(word & 0xFFFF0000);
  }
  __device__ __forceinline__ static void Unpack(uint16_t word,
                                                float (&out)[1]) {
    out[0] = Bf16ToFloat(word);
  }

  __device__ __forceinline__ static uint2 Pack(const float (&values)[4]) {
    return make_uint2(gpu::PackBf16x2(values[0], values[1]),
                      gpu::PackBf16x2(values[2], values[3]));
  }
  __device__ __forceinline__ static uint32_t Pack(const float (&values)[2]) {
    return gpu::PackBf16x2(values[0], values[1]);
  }
  __device__ __forceinline__ static uint16_t Pack(const float (&values)[1]) {
    return FloatToBf16(values[0]);
  }
};

struct F32Words {
  using Bits = uint32_t;

  __device__ __forceinline__ static void Unpack(uint4 word, float (&out)[4]) {
    out[0] = FloatFromBits(word.x);
    out[1] = FloatFromBits(word.y);
    out[2] = FloatFromBits(word.z);
    out[3] = FloatFromBits(word.w);
  }

  __device__ __forceinline__ static void Unpack(uint2 word, float (&out)[2]) {
    out[0] = FloatFromBits(word.x);
    out[1] = FloatFromBits(word.y);
  }
  __device__ __forceinline__ static void Unpack(uint32_t word,
                                                float (&out)[1]) {
    out[0] = FloatFromBits(word);
  }

  __device__ __forceinline__ static uint4 Pack(const float (&values)[4]) {
    return make_uint4(BitsFromFloat(values[0]), BitsFromFloat(values[1]),
                      BitsFromFloat(values[2]), BitsFromFloat(values[3]));
  }
  __device__ __forceinline__ static uint2 Pack(const float (&values)[2]) {
    return make_uint2(BitsFromFloat(values[0]), BitsFromFloat(values[1]));
  }
  __device__ __forceinline__ static uint32_t Pack(const float (&values)[1]) {
    return BitsFromFloat(values[0]);
  }
};

__device__ __forceinline__ void LoadWeights(const float* from,
                                            float (&out)[4]) {
  const float4 w = gpu::LoadCached(reinterpret_cast<const float4*>(from));
  out[0] = w.x;
  out[1] = w.y;
  out[2] = w.z;
  out[3] = w.w;
}
__device__ __forceinline__ void LoadWeights(const float* from,
                                            float (&out)[2]) {
  const float2 w = gpu::LoadCached(reinterpret_cast<const float2*>(from));
  out[0] = w.x;
  out[1] = w.y;
}
__device__ __forceinline__ void LoadWeights(const float* from,
                                            float (&out)[1]) {
  out[0] = gpu::LoadCached(from);
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_WORDS_CUH_

#ifndef ENGRAM_COMPUTE_DEQUANT_DECODE_KERNEL_CUH_
#define ENGRAM_COMPUTE_DEQUANT_DECODE_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "compute/dequant/decode_args.h"
#include "compute/dequant/decode_core.h"
#include "compute/dequant/decode_shape.h"
#include "compute/project/fragment_layout.h"
#include "core/gpu/ptx.cuh"
#include "core/model/number_formats.h"

// Packed rows -> what the projection multiplies, as bf16 (which holds it
// exactly); decode_shape.h says who takes what.
//
// The time is that of memory. V4.1 reads 6.3 KB and writes 12.3 KB a token:
// 4.3 ns at 4.3 TB/s. A lane of the wide kernel has eight loads of 8 codes
// under way, 2 KiB a warp and 80 KiB an SM, and takes about 6 instructions a
// value of the 20 that an SM has time for.

namespace engram {

// Where value k of a token stands in the output.
template <DecodedLayout kLayout>
__device__ __forceinline__ uint64_t DecodedAt(uint64_t token, uint64_t k,
                                              uint64_t in) {
  if constexpr (kLayout == DecodedLayout::kFragments) {
    return FragmentIndex(token, k, in);
  } else {
    return token * in + k;
  }
}

// Scales for which one product by a power of two is the value.
inline constexpr uint32_t kFirstPlainScale = 105;  // 2^-22: below is tiny
inline constexpr uint32_t kLastPlainScale = 134;   // the power fits bf16

__device__ __forceinline__ bool IsPlain(uint2 codes, uint32_t scale) {
  // Adding 1 to the 7 bits of a code carries for NaN only.
  const uint32_t nan = (((codes.x & 0x7F7F7F7F) + 0x01010101) |
                        ((codes.y & 0x7F7F7F7F) + 0x01010101)) &
                       0x80808080;
  return nan == 0 &&
         scale - kFirstPlainScale <= kLastPlainScale - kFirstPlainScale;
}

// Two codes in the high bytes of the halves -> two bf16. Moved to the exponent
// and mantissa of bf16, the 7 bits of a code are its value times 2^-120,
// subnormals included; `power` is 2^120 times the scale. Exact: bf16 holds a
// power of two times 4 significant bits.
__device__ __forceinline__ uint32_t DecodePlainPair(uint32_t codes,
                                                    uint32_t power) {
  return gpu::MulBf16x2((codes & 0x80008000) | (codes >> 4 & 0x07F007F0),
                        power);
}

// Eight codes under one scale, if IsPlain.
__device__ __forceinline__ uint4 DecodePlain(uint2 codes, uint32_t scale) {
  // The exponent field of 2^(120 + scale - 127), twice.
  const uint32_t power = (scale + 120) * 0x00800080;
  return make_uint4(
      DecodePlainPair(gpu::PermuteBytes(codes.x, 0, 0x1404), power),
      DecodePlainPair(gpu::PermuteBytes(codes.x, 0, 0x3424), power),
      DecodePlainPair(gpu::PermuteBytes(codes.y, 0, 0x1404), power),
      DecodePlainPair(gpu::PermuteBytes(codes.y, 0, 0x3424), power));
}

// The same for any codes and scale, by the functions that the CPU uses.
__device__ __forceinline__ uint4 DecodeAll(uint2 codes, uint32_t scale) {
  const float factor = E8m0ToFloat(static_cast<uint8_t>(scale));
  const auto value = [&](uint32_t code) -> uint32_t {
    return FloatToBf16(DecodeForProjection(static_cast<uint8_t>(code), factor));
  };
  const auto pair = [&](uint32_t two) {
    return value(two) | value(two >> 8) << 16;
  };
  return make_uint4(pair(codes.x), pair(codes.x >> 16), pair(codes.y),
                    pair(codes.y >> 16));
}

// Eight values of one column, of kDecodeTokens tokens.
struct DecodeLane {
  const std::byte* codes;  // of the first token, as all pointers
  const std::byte* scale;
  uint16_t* out;
  uint64_t token_bytes;   // from token to token of `codes` and `scale`
  uint64_t token_values;  // the same of `out`
  uint32_t token_count;   // of kDecodeTokens
};

// kFull: all tokens are there. In fragments, those that are not are zeros.
template <DecodedLayout kLayout, bool kFull>
__device__ __forceinline__ void DecodeTile(const DecodeLane& lane) {
  constexpr bool kPads = kLayout == DecodedLayout::kFragments;
  uint2 codes[kDecodeTokens];
  uint32_t scales[kDecodeTokens];
#pragma unroll
  for (uint32_t t = 0; t < kDecodeTokens; ++t) {
    codes[t] = make_uint2(0, 0);
    scales[t] = kFirstPlainScale;
    if (!kFull && t >= lane.token_count) continue;
    codes[t] = gpu::LoadStreaming(
        reinterpret_cast<const uint2*>(lane.codes + t * lane.token_bytes));
    scales[t] = gpu::LoadStreaming(
        reinterpret_cast<const uint8_t*>(lane.scale + t * lane.token_bytes));
  }
  uint32_t not_plain = 0;
#pragma unroll
  for (uint32_t t = 0; t < kDecodeTokens; ++t) {
    if (!kFull && !kPads && t >= lane.token_count) continue;
    if (!IsPlain(codes[t], scales[t])) not_plain |= uint32_t{1} << t;
    gpu::Store(reinterpret_cast<uint4*>(lane.out + t * lane.token_values),
               DecodePlain(codes[t], scales[t]));
  }
  // Seldom, and the code is long: read again, and written over.
#pragma unroll 1
  for (uint32_t t = 0; not_plain >> t != 0; ++t) {
    if ((not_plain >> t & 1) == 0) continue;
    const uint4 values = DecodeAll(
        gpu::LoadStreaming(
            reinterpret_cast<const uint2*>(lane.codes + t * lane.token_bytes)),
        gpu::LoadStreaming(reinterpret_cast<const uint8_t*>(
            lane.scale + t * lane.token_bytes)));
    gpu::Store(reinterpret_cast<uint4*>(lane.out + t * lane.token_values),
               values);
  }
}

template <DecodedLayout kLayout>
__global__ void __launch_bounds__(kDecodeThreads)
    DecodeWideKernel(DecodeArgs args) {
  constexpr bool kFragments = kLayout == DecodedLayout::kFragments;
  const uint32_t pieces_per_row = DecodePiecesPerRow(args);
  const uint32_t blocks_per_tile = DecodeBlocksPerTile(args);
  const uint32_t first_token = blockIdx.x / blocks_per_tile * kDecodeTokens;
  const uint32_t piece =
      blockIdx.x % blocks_per_tile * kDecodeWarps + threadIdx.x / 32;
  const uint32_t column = piece / pieces_per_row;
  const uint32_t first =
      piece % pieces_per_row * kDecodePiece + threadIdx.x % 32 * kDecodeRun;
  if (column >= args.columns || first >= args.width) return;

  const uint32_t row_bytes = args.width + args.width / args.block_size;
  const uint32_t in = args.columns * args.width;
  const uint64_t token_bytes = uint64_t{args.columns} * row_bytes;
  const std::byte* const row =
      args.rows + first_token * token_bytes + uint64_t{column} * row_bytes;
  const uint32_t left = args.token_count - first_token;
  const DecodeLane lane = {
      .codes = row + first,
      .scale = row + args.width + first / args.block_size,
      .out = args.out +
             DecodedAt<kLayout>(first_token,
                                uint64_t{column} * args.width + first, in),
      .token_bytes = token_bytes,
      .token_values = kFragments ? kFragmentK : in,
      .token_count = left < kDecodeTokens ? left : kDecodeTokens};
  if (lane.token_count == kDecodeTokens) {
    DecodeTile<kLayout, true>(lane);
  } else {
    DecodeTile<kLayout, false>(lane);
  }
}

// The values of a block of 32 whose scales are not all one, one in each lane:
// the reference's quantisation of bf16 as it stands. All lanes must come.
__device__ __forceinline__ float RequantiseInWarp(float value) {
  float amax = fabsf(value);  // fmaxf passes NaN over
#pragma unroll
  for (uint32_t mask = 1; mask < 32; mask *= 2) {
    amax = fmaxf(amax, gpu::ShuffleXor(amax, mask));
  }
  return Requantise(value, QuantScale(amax));
}

template <DecodedLayout kLayout>
__global__ void __launch_bounds__(kDecodeThreads)
    DecodeAnyKernel(DecodeArgs args) {
  const uint32_t in = args.columns * args.width;
  const uint32_t blocks_per_token = DecodeBlocksPerToken(args);
  const uint32_t token = blockIdx.x / blocks_per_token;
  const uint32_t k =
      blockIdx.x % blocks_per_token * kDecodeThreads + threadIdx.x;
  if (k >= in) return;  // whole warps
  float value = 0;
  if (token < args.token_count) {
    const uint32_t row_bytes = args.width + args.width / args.block_size;
    const uint32_t in_row = k % args.width;
    const auto* const row =
        reinterpret_cast<const uint8_t*>(args.rows) +
        (uint64_t{token} * args.columns + k / args.width) * row_bytes;
    const uint8_t code = gpu::LoadStreaming(row + in_row);
    const float scale = E8m0ToFloat(
        gpu::LoadStreaming(row + args.width + in_row / args.block_size));
    value = args.block_size % kQuantBlock == 0
                ? DecodeForProjection(code, scale)
                : RequantiseInWarp(RoundToBf16(DecodeValue(code, scale)));
  }
  gpu::Store(args.out + DecodedAt<kLayout>(token, k, in), FloatToBf16(value));
}

// Calls launch(kernel) with the kernel of a shape.
template <typename Launch>
void VisitDecodeKernel(const DecodeArgs& args, const DecodeShape& shape,
                       Launch launch) {
  const bool is_wide = shape.kind == DecodeKind::kWide;
  if (args.layout == DecodedLayout::kFragments) {
    launch(is_wide ? DecodeWideKernel<DecodedLayout::kFragments>
                   : DecodeAnyKernel<DecodedLayout::kFragments>);
  } else {
    launch(is_wide ? DecodeWideKernel<DecodedLayout::kRowMajor>
                   : DecodeAnyKernel<DecodedLayout::kRowMajor>);
  }
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DECODE_KERNEL_CUH_

#ifndef ENGRAM_COMPUTE_PROJECT_PROJECT_TILE_CUH_
#define ENGRAM_COMPUTE_PROJECT_PROJECT_TILE_CUH_

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "compute/project/fragment_layout.h"
#include "compute/project/project_args.h"
#include "core/gpu/ptx.cuh"
#include "core/model/number_formats.h"

// What one warp computes of the projection. Every output is, over the blocks
// of 32 of K in their order,
//   part = two mma of the block's 32 products, from 0
//   sum  = fma(part, the block's scale, sum), from 0
// and then rounded to bf16: the same instructions on nothing but its own
// weights and token, so the same bits in tiles of every shape and at every
// place in them.

namespace engram {

// One lane's share of a block of 32 of K for 16 features: operand A of its
// two products.
struct WeightFragment {
  uint32_t a[2][4];
};

// Four e4m3 codes (fragment_layout.h) -> two pairs of bf16, exactly. Moved to
// the exponent and mantissa of bf16, the 7 bits of a code are its value times
// 2^-120, subnormals included.
__device__ __forceinline__ void DecodeWord(uint32_t codes, uint32_t& first,
                                           uint32_t& second) {
  constexpr uint32_t kSigns = 0x80008000;
  constexpr uint32_t kRest = 0x07F007F0;
  constexpr uint32_t kPower120 = 0x7B807B80;
  first = gpu::MulBf16x2(((codes << 8) & kSigns) | ((codes << 4) & kRest),
                         kPower120);
  second = gpu::MulBf16x2((codes & kSigns) | ((codes >> 4) & kRest), kPower120);
}

__device__ __forceinline__ WeightFragment DecodeWeights(uint4 codes) {
  WeightFragment weights;
  DecodeWord(codes.x, weights.a[0][0], weights.a[0][2]);
  DecodeWord(codes.y, weights.a[0][1], weights.a[0][3]);
  DecodeWord(codes.z, weights.a[1][0], weights.a[1][2]);
  DecodeWord(codes.w, weights.a[1][1], weights.a[1][3]);
  return weights;
}

// sums: this lane's 4 of 16 features by 8 tokens.
__device__ __forceinline__ void AddBlock(const WeightFragment& weights,
                                         uint4 tokens, float scale,
                                         float (&sums)[4]) {
  float part[4] = {0, 0, 0, 0};
  gpu::MmaBf16(part, weights.a[0], {tokens.x, tokens.y});
  gpu::MmaBf16(part, weights.a[1], {tokens.z, tokens.w});
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) sums[i] = std::fma(part[i], scale, sums[i]);
}

// Stores 16 features of 8 tokens. A lane has features g and g + 8 of tokens
// 2t and 2t + 1 (lane = 4g + t); two exchanges give it 4 features of one
// token, so that a warp writes whole sectors. Ordinary stores: the gate reads
// kv next, at best from L2. All lanes must come.
__device__ __forceinline__ void StoreTile(const ProjectArgs& args,
                                          const float (&sums)[4],
                                          uint32_t first_feature,
                                          uint32_t first_token) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t g = lane / 4;
  const uint32_t t = lane % 4;
  const auto pair = [](uint32_t low, uint32_t high) {
    return (low & 0xFFFF) | high << 16;
  };
  // Neighbours in g: the even one takes both features of token 2t.
  const bool odd = g % 2 != 0;
  const uint32_t even_token = pair(FloatToBf16(sums[0]), FloatToBf16(sums[2]));
  const uint32_t odd_token = pair(FloatToBf16(sums[1]), FloatToBf16(sums[3]));
  const uint32_t mine = odd ? odd_token : even_token;
  const uint32_t other = gpu::ShuffleXor(odd ? even_token : odd_token, 4);
  const uint32_t left = odd ? other : mine;
  const uint32_t right = odd ? mine : other;
  const uint32_t low = pair(left, right);               // g / 2 * 2, + 1
  const uint32_t high = pair(left >> 16, right >> 16);  // the same + 8
  // Neighbours in g / 2: the even one takes four features below 8.
  const bool upper = g / 2 % 2 != 0;
  const uint32_t kept = upper ? high : low;
  const uint32_t got = gpu::ShuffleXor(upper ? low : high, 8);
  const uint2 quad = upper ? make_uint2(got, kept) : make_uint2(kept, got);

  const uint32_t token = first_token + 2 * t + (odd ? 1 : 0);
  const uint32_t feature = first_feature + (upper ? 8 : 0) + g / 4 * 4;
  if (token >= args.token_count || feature >= args.out) return;
  uint16_t* const to = args.kv + size_t{token} * args.out + feature;
  if (args.out % 4 == 0) {
    *reinterpret_cast<uint2*>(to) = quad;
    return;
  }
  const uint32_t words[2] = {quad.x, quad.y};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if (feature + i < args.out) {
      to[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
    }
  }
}

template <uint32_t kFeatureTiles, uint32_t kTokenTiles>
__device__ __forceinline__ void StoreTiles(
    const ProjectArgs& args, const float (&sums)[kFeatureTiles][kTokenTiles][4],
    uint32_t first_feature, uint32_t first_token) {
#pragma unroll
  for (uint32_t m = 0; m < kFeatureTiles; ++m) {
#pragma unroll
    for (uint32_t n = 0; n < kTokenTiles; ++n) {
      StoreTile(args, sums[m][n], first_feature + m * kTileFeatures,
                first_token + n * kFragmentTokens);
    }
  }
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECT_TILE_CUH_

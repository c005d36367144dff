#ifndef ENGRAM_COMPUTE_PROJECT_FRAGMENT_LAYOUT_H_
#define ENGRAM_COMPUTE_PROJECT_FRAGMENT_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "core/model/number_formats.h"

// How the GPU's projection wants tokens and weights in memory, so that a lane
// finds what it needs of a block of 32 values of K in one load of 16 bytes.
//
// mma.m16n8k16 multiplies A (16 features x 16 of K) by B (16 of K x 8 tokens).
// With g = lane / 4 and t = lane % 4 its registers hold, two bf16 each:
//   a[0], a[2]: feature g      of A, K 2t, 2t+1 and 2t+8, 2t+9
//   a[1], a[3]: feature g + 8, the same of K
//   b[0], b[1]: token g of B, the same of K
//   d[0], d[1]: feature g     of D, tokens 2t and 2t+1
//   d[2], d[3]: feature g + 8, the same tokens
// Which value of K stands in which place of A is free as long as B has it in
// the same place. So a block of 32 is cut in 4 runs of 8 neighbours, lane t has
// run t, and two products are summed: the first has the values 0 .. 3 of each
// run, in a[0], a[2], b[0], b[1] in this order, the second has 4 .. 7.
//
// Tokens ("fragments"): bf16 [tokens / 8][in / 32][8 tokens][32 of K]. Lane
// (g, t) reads the 16 bytes of token g and run t: 16 * lane within the block.
// Tokens are padded with zeros to a multiple of 8.
//
// Weights: e4m3 [out / 16][in / 32][32 lanes][16 bytes], padded with zeros to a
// multiple of 32 features and, so that kernels need not look at each block, of
// 4 blocks of K. The 4-byte words of a lane:
//   0, 1: features g and g + 8, values 0 .. 3 of run t;  2, 3: values 4 .. 7.
// The bytes of a word are values 0, 2, 1, 3: 0 and 1 (2 and 3) are then a pair
// of bf16 after one shift.
//
// Scales: float32 2^(e8m0 - 127) [out / 32][in / 32], padded like the weights:
// those of 4 blocks are one load of 16 bytes.

namespace engram {

// How token values stand, bf16 both: as above, or row major [tokens][in].
enum class TokenLayout : uint8_t { kFragments, kRowMajor };

inline constexpr uint32_t kFragmentTokens = 8;
inline constexpr uint32_t kFragmentK = 32;
inline constexpr uint32_t kFragmentRun = 8;  // values of K that a lane holds
inline constexpr uint32_t kFragmentValues = kFragmentTokens * kFragmentK;

inline constexpr uint32_t kTileFeatures = 16;
inline constexpr uint32_t kTileCodes = kTileFeatures * kFragmentK;
inline constexpr uint32_t kScaleFeatures = 32;  // features that share a scale
inline constexpr uint32_t kBlockGroup = 4;      // blocks of K, for padding

ENGRAM_HOST_DEVICE constexpr size_t RoundUpTo(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Lane that holds value k (of 32) of token or feature `row` (of 8).
ENGRAM_HOST_DEVICE constexpr uint32_t FragmentLane(uint32_t row, uint32_t k) {
  return row * 4 + k / kFragmentRun;
}

// bf16 values of `tokens` tokens in fragments.
ENGRAM_HOST_DEVICE constexpr size_t FragmentCount(size_t tokens, size_t in) {
  return RoundUpTo(tokens, kFragmentTokens) * in;
}

// Where value k of a token stands, counted in bf16 values.
ENGRAM_HOST_DEVICE constexpr size_t FragmentIndex(size_t token, size_t k,
                                                  size_t in) {
  const size_t block =
      token / kFragmentTokens * (in / kFragmentK) + k / kFragmentK;
  return block * kFragmentValues + token % kFragmentTokens * kFragmentK +
         k % kFragmentK;
}

// Blocks of K that weights and scales are padded to.
ENGRAM_HOST_DEVICE constexpr size_t PackedBlocks(size_t in) {
  return RoundUpTo(in / kFragmentK, kBlockGroup);
}

ENGRAM_HOST_DEVICE constexpr size_t PackedCodeCount(size_t out, size_t in) {
  return RoundUpTo(out, kScaleFeatures) * PackedBlocks(in) * kFragmentK;
}

// Where the code of weight [feature, k] stands within its tile of 16 features
// and 32 of K.
ENGRAM_HOST_DEVICE constexpr uint32_t PackedCodeInTile(uint32_t feature,
                                                       uint32_t k) {
  const uint32_t value = k % kFragmentRun;
  const uint32_t word = value / 4 * 2 + feature / 8;
  const uint32_t byte = value % 2 * 2 + value % 4 / 2;
  return FragmentLane(feature % 8, k) * 16 + word * 4 + byte;
}

ENGRAM_HOST_DEVICE constexpr size_t PackedCodeIndex(size_t feature, size_t k,
                                                    size_t in) {
  const size_t tile =
      feature / kTileFeatures * PackedBlocks(in) + k / kFragmentK;
  return tile * kTileCodes +
         PackedCodeInTile(static_cast<uint32_t>(feature % kTileFeatures),
                          static_cast<uint32_t>(k % kFragmentK));
}

ENGRAM_HOST_DEVICE constexpr size_t PackedScaleCount(size_t out, size_t in) {
  return RoundUpTo(out, kScaleFeatures) / kScaleFeatures * PackedBlocks(in);
}

// Where the scale of weight [feature, k] stands.
ENGRAM_HOST_DEVICE constexpr size_t PackedScaleIndex(size_t feature, size_t k,
                                                     size_t in) {
  return feature / kScaleFeatures * PackedBlocks(in) + k / kFragmentK;
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_FRAGMENT_LAYOUT_H_

#ifndef ENGRAM_COMPUTE_DEQUANT_DECODE_SHAPE_H_
#define ENGRAM_COMPUTE_DEQUANT_DECODE_SHAPE_H_

#include <cstdint>

#include "compute/dequant/decode_args.h"
#include "core/gpu/gpu_types.h"
#include "core/model/number_formats.h"

// How values are dealt out to blocks.

namespace engram {

inline constexpr uint32_t kDecodeThreads = 128;  // of a block
inline constexpr uint32_t kDecodeWarps = kDecodeThreads / 32;

enum class DecodeKind {
  // A warp takes a piece of a row, the same of kDecodeTokens tokens; a lane
  // reads kDecodeRun codes at a time.
  kWide,
  // A warp takes 32 values of one token, a lane one: for formats whose scales
  // cut across the blocks of the quantisation, or that are not aligned.
  kAny,
};

inline constexpr uint32_t kDecodeTokens = 8;
inline constexpr uint32_t kDecodeRun = 8;
inline constexpr uint32_t kDecodePiece = 32 * kDecodeRun;

struct DecodeShape {
  LaunchShape launch;
  DecodeKind kind = DecodeKind::kAny;
};

ENGRAM_HOST_DEVICE constexpr uint32_t DecodePiecesPerRow(
    const DecodeArgs& args) {
  return (args.width - 1) / kDecodePiece + 1;
}

// Blocks of the wide kernel for kDecodeTokens tokens.
ENGRAM_HOST_DEVICE constexpr uint32_t DecodeBlocksPerTile(
    const DecodeArgs& args) {
  return (args.columns * DecodePiecesPerRow(args) - 1) / kDecodeWarps + 1;
}

// Blocks of the other kernel for one token.
ENGRAM_HOST_DEVICE constexpr uint32_t DecodeBlocksPerToken(
    const DecodeArgs& args) {
  return (args.columns * args.width - 1) / kDecodeThreads + 1;
}

// Of a token: columns * width.
inline constexpr uint32_t kMaxDecodeValues = uint32_t{1} << 30;

// Blocks that the launch would have; a grid has fewer than 2^31.
// REQUIRES: 0 < columns * width <= kMaxDecodeValues; block_size divides width.
uint64_t DecodeBlockCount(const DecodeArgs& args);

// REQUIRES: besides, 0 < DecodeBlockCount(args) < 2^31, and 32 divides
// columns * width.
DecodeShape MakeDecodeShape(const DecodeArgs& args);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DECODE_SHAPE_H_

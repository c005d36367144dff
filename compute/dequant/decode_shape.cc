#include "compute/dequant/decode_shape.h"

#include <bit>
#include <cstdint>

#include "compute/dequant/decode_args.h"
#include "compute/dequant/decode_core.h"
#include "compute/project/fragment_layout.h"
#include "core/base/check.h"

namespace engram {
namespace {

bool IsAligned(const void* pointer, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

DecodeKind Kind(const DecodeArgs& args) {
  const uint32_t row_bytes = args.width + args.width / args.block_size;
  const bool is_wide = args.block_size % kQuantBlock == 0 &&
                       std::has_single_bit(args.block_size) &&
                       row_bytes % kDecodeRun == 0 &&
                       IsAligned(args.rows, kDecodeRun) &&
                       IsAligned(args.out, kDecodeRun * sizeof(*args.out));
  return is_wide ? DecodeKind::kWide : DecodeKind::kAny;
}

}  // namespace

uint64_t DecodeBlockCount(const DecodeArgs& args) {
  if (Kind(args) == DecodeKind::kWide) {
    const uint64_t tiles =
        RoundUpTo(args.token_count, kDecodeTokens) / kDecodeTokens;
    return tiles * DecodeBlocksPerTile(args);
  }
  const uint64_t tokens = args.layout == DecodedLayout::kFragments
                              ? RoundUpTo(args.token_count, kFragmentTokens)
                              : args.token_count;
  return tokens * DecodeBlocksPerToken(args);
}

DecodeShape MakeDecodeShape(const DecodeArgs& args) {
  const uint64_t blocks = DecodeBlockCount(args);
  ENGRAM_CHECK(blocks > 0 && blocks < uint64_t{1} << 31);
  ENGRAM_CHECK(args.columns * args.width % kQuantBlock == 0);
  DecodeShape shape;
  shape.kind = Kind(args);
  shape.launch.grid_x = static_cast<uint32_t>(blocks);
  shape.launch.block_x = kDecodeThreads;
  return shape;
}

}  // namespace engram

#include "compute/hash/flat_tokens.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/hash/hash_args.h"
#include "core/base/check.h"

namespace engram {
namespace {

uint32_t* CopyIds(absl::Span<const uint32_t> tokens,
                  absl::Span<const uint8_t> mask, uint32_t* to) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    *to++ = mask.empty() || mask[i] != 0 ? tokens[i] : kBlockedToken;
  }
  return to;
}

}  // namespace

FlatSizes FlatSizesOf(absl::Span<const TokenChunk> chunks,
                      uint32_t max_lookback) {
  FlatSizes sizes;
  for (const TokenChunk& chunk : chunks) sizes.tokens += chunk.tokens.size();
  sizes.slots = sizes.tokens + chunks.size() * max_lookback;
  return sizes;
}

void FlattenTokens(absl::Span<const TokenChunk> chunks, uint32_t max_lookback,
                   absl::Span<uint32_t> ids, absl::Span<uint32_t> positions) {
  const FlatSizes sizes = FlatSizesOf(chunks, max_lookback);
  ENGRAM_CHECK(sizes.slots == ids.size() && ids.size() < kBlockedToken);
  ENGRAM_CHECK(sizes.tokens == positions.size());
  uint32_t* to = ids.data();
  uint32_t* position = positions.data();
  for (const TokenChunk& chunk : chunks) {
    ENGRAM_CHECK(chunk.lookback.size() <= max_lookback);
    to = std::fill_n(to, max_lookback - chunk.lookback.size(), kBlockedToken);
    to = CopyIds(chunk.lookback, chunk.lookback_mask, to);
    for (size_t i = 0; i < chunk.tokens.size(); ++i) {
      *position++ = static_cast<uint32_t>(to - ids.data() + i);
    }
    to = CopyIds(chunk.tokens, chunk.mask, to);
  }
}

}  // namespace engram

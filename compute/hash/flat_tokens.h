#ifndef ENGRAM_COMPUTE_HASH_FLAT_TOKENS_H_
#define ENGRAM_COMPUTE_HASH_FLAT_TOKENS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compute/hash/ngram_hash.h"

// Chunks as HashBatch has them: for each its lookback, always max_lookback
// slots of it, then its tokens.

namespace engram {

struct FlatSizes {
  size_t slots = 0;   // of HashBatch::ids
  size_t tokens = 0;  // of HashBatch::positions
};

FlatSizes FlatSizesOf(absl::Span<const TokenChunk> chunks,
                      uint32_t max_lookback);

// Positions are those of all tokens in order, dead ones too.
// REQUIRES: NgramHasher::Check is OK for each chunk; sizes are FlatSizesOf's,
// with slots < 2^32.
void FlattenTokens(absl::Span<const TokenChunk> chunks, uint32_t max_lookback,
                   absl::Span<uint32_t> ids, absl::Span<uint32_t> positions);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_FLAT_TOKENS_H_

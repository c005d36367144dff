#ifndef ENGRAM_TESTS_GOLDEN_HASH_SEQUENCES_H_
#define ENGRAM_TESTS_GOLDEN_HASH_SEQUENCES_H_

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "compute/hash/ngram_hash.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"

namespace engram {

// Row ids [positions, columns] of a layer, every sequence hashed in steps of
// these lengths with the lookback that a caller would send.
inline std::vector<RowId> HashSequences(const NgramHasher& hasher,
                                        size_t layer_index,
                                        const GoldenFile& golden,
                                        size_t max_lookback,
                                        const std::vector<size_t>& chunks) {
  std::vector<RowId> ids(golden.positions() * hasher.columns());
  for (size_t b = 0; b < golden.batch(); ++b) {
    size_t start = 0;
    for (const size_t length : chunks) {
      const size_t back = std::min(start, max_lookback);
      const size_t at = b * golden.length() + start;
      const auto tokens = absl::MakeConstSpan(golden.tokens());
      const auto mask = absl::MakeConstSpan(golden.mask());
      TokenChunk chunk;
      chunk.start_position = start;
      chunk.tokens = tokens.subspan(at, length);
      chunk.mask = mask.subspan(at, length);
      chunk.lookback = tokens.subspan(at - back, back);
      chunk.lookback_mask = mask.subspan(at - back, back);
      EXPECT_TRUE(hasher.Check(chunk).ok());
      hasher.Hash(layer_index, chunk,
                  absl::MakeSpan(ids).subspan(at * hasher.columns(),
                                              length * hasher.columns()));
      start += length;
    }
    EXPECT_EQ(start, golden.length());
  }
  return ids;
}

}  // namespace engram

#endif  // ENGRAM_TESTS_GOLDEN_HASH_SEQUENCES_H_

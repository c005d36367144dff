#ifndef ENGRAM_COMPUTE_HASH_NGRAM_HASH_H_
#define ENGRAM_COMPUTE_HASH_NGRAM_HASH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/token_map.h"

namespace engram {

// One sequence's share of a step. Spans are the caller's.
struct TokenChunk {
  // Position of tokens[0] in its sequence.
  uint64_t start_position = 0;
  absl::Span<const uint32_t> tokens;
  // Exactly min(start_position, max_ngram_size - 1) ids, oldest first.
  absl::Span<const uint32_t> lookback;
  // One byte each, 0 = dead; empty: all live.
  absl::Span<const uint8_t> mask;
  absl::Span<const uint8_t> lookback_mask;
};

// INVALID_ARGUMENT: the map is of another vocabulary; names both sizes.
absl::Status CheckTokenMap(const TokenMap& token_map,
                           const EngramConfig& config);

// Token ids -> row ids of every Engram layer, after DeepSeek-V4.1-Flash
// inference/engram.py. Keeps no state between calls: a chunk brings its
// lookback, so any split into chunks gives the same ids.
//
// Immutable. Thread safety: all methods may be called concurrently.
class NgramHasher {
 public:
  static absl::StatusOr<NgramHasher> Create(const EngramConfig& config,
                                            const EngramLayout& layout,
                                            const TokenMap& token_map);

  // INVALID_ARGUMENT naming value and limit: a live token id that is not below
  // vocab_size, a lookback of another length, masks of another length.
  // Ids at dead positions are ignored, whatever they are.
  absl::Status Check(const TokenChunk& chunk) const;

  // Row ids of one layer, [tokens, columns], n-gram size major, head minor.
  // Dead positions get the ids of the pad token; nobody needs to fetch them.
  // REQUIRES: Check(chunk) is OK; out.size() == tokens * columns.
  void Hash(size_t layer_index, const TokenChunk& chunk,
            absl::Span<RowId> out) const;

  uint32_t columns() const { return columns_; }
  size_t layer_count() const { return layers_.size(); }

 private:
  struct Layer;
  uint32_t vocab_size_ = 0;
  uint32_t max_ngram_size_ = 0;
  uint32_t n_heads_ = 0;
  uint32_t columns_ = 0;
  int32_t pad_ = 0;
  std::shared_ptr<const std::vector<int32_t>> token_map_;
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_NGRAM_HASH_H_

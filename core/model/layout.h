#ifndef ENGRAM_CORE_MODEL_LAYOUT_H_
#define ENGRAM_CORE_MODEL_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/config.h"

namespace engram {

// Where a layer's n-grams land. Column c = (n-gram size - 2) * heads + head:
// row = hash % primes[c] + offsets[c].
struct LayerLayout {
  LayerId layer_id;
  uint64_t row_count = 0;            // sum of the primes
  std::vector<uint32_t> primes;      // [columns]
  std::vector<uint64_t> offsets;     // [columns], sum of the primes before
  std::vector<int64_t> multipliers;  // [max_ngram_size], one a lookback
};

// Layout of every Engram layer of a configuration, after
// DeepSeek-V4.1-Flash inference/engram.py: primes are taken in order of layer,
// n-gram size, head; each the smallest prime >= engram_vocab_size above the
// last of this size and taken by nobody. Multipliers are what numpy draws:
// default_rng(10007 * layer_id).integers(0, bound, max_ngram_size, int64)*2+1,
// bound = (2^63-1) / compressed_vocab_size / 2.
//
// Immutable; copying is cheap enough for start-up only.
class EngramLayout {
 public:
  // INVALID_ARGUMENT: a layer's rows are not config.num_embeddings (where
  // given), or exceed 2^32 (row ids are uint32).
  static absl::StatusOr<EngramLayout> Create(const EngramConfig& config);

  absl::Span<const LayerLayout> layers() const { return layers_; }
  // Position of `layer_id` in layers(), or NOT_FOUND (UNKNOWN to this model).
  absl::StatusOr<size_t> IndexOf(LayerId layer_id) const;

  // primes [layer][size][head], offsets, rows, multipliers (as strings: they
  // exceed what a double holds), config: the shape of golden/v41.layout.json.
  std::string ToJson(const EngramConfig& config) const;

 private:
  std::vector<LayerLayout> layers_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_LAYOUT_H_

#ifndef ENGRAM_TABLE_SERVER_HEAT_SAMPLED_ROWS_H_
#define ENGRAM_TABLE_SERVER_HEAT_SAMPLED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace engram {

// A row by its HeatKey, and how often it was asked for.
struct RowLookups {
  uint64_t key = 0;
  uint64_t lookups = 0;
};

// Exact counts of a sample of rows in bounded memory: the fixed-size spatial
// sampling of SHARDS (Waldspurger et al., FAST 2015). A row is in the sample if
// its hash is at most `last_hash`. That starts as all there is; when the sample
// gets too large it is lowered and what is above it dropped. It never rises, so
// what is in the sample was counted from the beginning, and which rows are in
// it has nothing to do with how often they are asked for.
//
// Thread-compatible.
class SampledRows {
 public:
  static constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

  // REQUIRES: max_rows >= 1.
  explicit SampledRows(size_t max_rows);

  // One more lookup of the row `key`, whose HeatHash is `hash`. Returns whether
  // last_hash is another now.
  bool Add(uint64_t key, uint64_t hash);

  uint64_t last_hash() const { return last_hash_; }
  size_t size() const { return lookups_.size(); }
  // Those with a hash of at most `last_hash`, in no order.
  std::vector<RowLookups> Rows(uint64_t last_hash) const;

 private:
  void Lower();

  const size_t max_rows_;
  uint64_t last_hash_ = kAll;
  absl::flat_hash_map<uint64_t, uint64_t> lookups_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_HEAT_SAMPLED_ROWS_H_

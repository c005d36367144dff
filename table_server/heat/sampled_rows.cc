#include "table_server/heat/sampled_rows.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/wire/heat_hash.h"

namespace engram {

SampledRows::SampledRows(size_t max_rows) : max_rows_(max_rows) {
  ENGRAM_CHECK(max_rows >= 1);
}

bool SampledRows::Add(uint64_t key, uint64_t hash) {
  if (hash > last_hash_) return false;
  ++lookups_[key];
  if (lookups_.size() <= max_rows_) return false;
  Lower();
  return true;
}

// Drops an eighth at a time: each time costs a look at all rows.
void SampledRows::Lower() {
  std::vector<uint64_t> hashes;
  hashes.reserve(lookups_.size());
  for (const auto& [key, lookups] : lookups_) hashes.push_back(HeatHash(key));
  const auto first_out =
      hashes.begin() + static_cast<ptrdiff_t>(max_rows_ - max_rows_ / 8);
  std::nth_element(hashes.begin(), first_out, hashes.end());
  // No two rows have the same hash, so the first of several is not 0.
  last_hash_ = *first_out - 1;
  absl::erase_if(lookups_, [&](const auto& row) {
    return HeatHash(row.first) > last_hash_;
  });
}

std::vector<RowLookups> SampledRows::Rows(uint64_t last_hash) const {
  std::vector<RowLookups> rows;
  rows.reserve(lookups_.size());
  for (const auto& [key, lookups] : lookups_) {
    if (HeatHash(key) <= last_hash) rows.push_back({key, lookups});
  }
  return rows;
}

}  // namespace engram

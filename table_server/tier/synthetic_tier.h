#ifndef ENGRAM_TABLE_SERVER_TIER_SYNTHETIC_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_SYNTHETIC_TIER_H_

#include <cstdint>
#include <vector>

#include "core/model/manifest.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Rows computed when they are asked for, nothing stored: a server of the true
// 384M-row layout for tests of routing and offsets. Every partition can be
// published at once.
class SyntheticTier final : public RowTier {
 public:
  SyntheticTier(const Manifest& manifest, uint64_t seed);

  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  size_t row_bytes() const override { return format_.row_bytes(); }
  size_t memory_bytes() const override { return 0; }
  size_t huge_page_bytes() const override { return 0; }

 private:
  const RowFormat format_;
  const uint64_t seed_;
  std::vector<LayerId> layer_ids_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_SYNTHETIC_TIER_H_

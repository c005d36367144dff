#include "table_server/tier/synthetic_tier.h"

#include "core/base/check.h"
#include "core/model/synthetic_rows.h"

namespace engram {

SyntheticTier::SyntheticTier(const Manifest& manifest, uint64_t seed)
    : format_(manifest.row_format()), seed_(seed) {
  for (const ManifestLayer& layer : manifest.layers()) {
    layer_ids_.push_back(layer.layer_id);
  }
}

absl::Status SyntheticTier::CopyRows(size_t layer_index,
                                     absl::Span<const RowId> row_ids,
                                     absl::Span<std::byte> out,
                                     std::vector<uint32_t>& /*misses*/) const {
  const size_t row_bytes = format_.row_bytes();
  ENGRAM_CHECK(out.size() == row_ids.size() * row_bytes);
  for (size_t i = 0; i < row_ids.size(); ++i) {
    SyntheticRow(seed_, layer_ids_[layer_index], row_ids[i], format_,
                 out.subspan(i * row_bytes, row_bytes));
  }
  return absl::OkStatus();
}

}  // namespace engram

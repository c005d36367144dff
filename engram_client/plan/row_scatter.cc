#include "engram_client/plan/row_scatter.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace engram {

RowScatter::RowScatter(const GatherPlan& plan,
                       absl::Span<const absl::Span<std::byte>> outs,
                       size_t row_bytes,
                       absl::Span<const GatherPlan::Part> parts)
    : plan_(plan), outs_(outs), row_bytes_(row_bytes), parts_(parts) {
  for (const GatherPlan::Part& part : parts) {
    ENGRAM_CHECK(part.rows() > 0 && part.layer_index < outs.size());
    missing_bytes_ += uint64_t{part.rows()} * row_bytes;
  }
}

void RowScatter::Append(absl::Span<const std::byte> bytes) {
  ENGRAM_CHECK(bytes.size() <= missing_bytes_);
  missing_bytes_ -= bytes.size();
  if (!split_row_.empty()) {
    const size_t take = std::min(row_bytes_ - split_row_.size(), bytes.size());
    split_row_.insert(split_row_.end(), bytes.begin(), bytes.begin() + take);
    bytes.remove_prefix(take);
    if (split_row_.size() < row_bytes_) return;
    ScatterRow(split_row_.data());
    split_row_.clear();
  }
  for (; bytes.size() >= row_bytes_; bytes.remove_prefix(row_bytes_)) {
    ScatterRow(bytes.data());
  }
  split_row_.insert(split_row_.end(), bytes.begin(), bytes.end());
}

void RowScatter::ScatterRow(const std::byte* row) {
  const GatherPlan::Part& part = parts_[part_];
  std::byte* const out = outs_[part.layer_index].data();
  for (const uint32_t slot : plan_.positions(part.begin + row_)) {
    std::memcpy(out + size_t{slot} * row_bytes_, row, row_bytes_);
  }
  if (++row_ < part.rows()) return;
  row_ = 0;
  ++part_;
}

}  // namespace engram

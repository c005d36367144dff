#include "engram_client/plan/row_scatter.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/base/prefetch.h"

namespace engram {
namespace {

// Rows of other calls lie between those of this one, so the caller's buffer is
// not written without gaps. Asking for a slot's lines this many rows before it
// is written hides most of that.
constexpr uint32_t kRowsAhead = 8;

}  // namespace

void RowScatter::Write(uint64_t offset_bytes,
                       absl::Span<const std::byte> bytes) const {
  ENGRAM_CHECK(bytes.size() <= size_bytes() &&
               offset_bytes <= size_bytes() - bytes.size());
  auto row = static_cast<uint32_t>(offset_bytes / row_bytes_);
  size_t offset = offset_bytes % row_bytes_;
  const CallRows::Run* run = rows_.runs().data();
  while (!bytes.empty()) {
    while (row >= run->end) ++run;
    size_t take = std::min(bytes.size(), row_bytes_ - offset);
    if (take == row_bytes_) {
      take *= std::min<size_t>(bytes.size() / row_bytes_, run->end - row);
      WriteRows(*run, row, bytes.subspan(0, take));
    } else {
      WriteRowPart(*run, row, offset, bytes.subspan(0, take));
    }
    bytes.remove_prefix(take);
    row += static_cast<uint32_t>((offset + take) / row_bytes_);
    offset = 0;
  }
}

void RowScatter::WriteRowPart(const CallRows::Run& run, uint32_t row,
                              size_t offset,
                              absl::Span<const std::byte> bytes) const {
  std::byte* const out = outs_[run.layer_index].data() + offset;
  const absl::Span<const uint32_t> next = plan_.next_slots(run.layer_index);
  for (uint32_t slot = rows_.first_slots()[row]; slot != GatherPlan::kNoSlot;
       slot = next[slot]) {
    std::memcpy(out + slot * row_bytes_, bytes.data(), bytes.size());
  }
}

void RowScatter::WriteRows(const CallRows::Run& run, uint32_t row,
                           absl::Span<const std::byte> bytes) const {
  std::byte* const out = outs_[run.layer_index].data();
  const absl::Span<const uint32_t> next = plan_.next_slots(run.layer_index);
  const absl::Span<const uint32_t> slots = rows_.first_slots();
  const size_t row_bytes = row_bytes_;
  const std::byte* from = bytes.data();
  const auto end = row + static_cast<uint32_t>(bytes.size() / row_bytes);
  for (; row < end; ++row, from += row_bytes) {
    if (row + kRowsAhead < end) {
      PrefetchBytes<PrefetchFor::kWrite>(
          out + slots[row + kRowsAhead] * row_bytes, row_bytes);
    }
    for (uint32_t slot = slots[row]; slot != GatherPlan::kNoSlot;
         slot = next[slot]) {
      std::memcpy(out + slot * row_bytes, from, row_bytes);
    }
  }
}

}  // namespace engram

#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/plan/gather_plan.h"

namespace engram {

// Copies the packed rows of one call to every slot that asked for them. The
// bytes come in pieces of any size and in any order, as a transport has them.
//
// Thread safety: Write may be called concurrently for bytes that do not
// overlap, as may scatters of different rows of one plan: they write to
// different bytes of the buffers.
class RowScatter {
 public:
  // `outs`: the buffer of each layer of the plan. `rows`: what the call asked
  // for. All must outlive the scatter.
  RowScatter(const GatherPlan& plan, const CallRows& rows,
             absl::Span<const absl::Span<std::byte>> outs, size_t row_bytes)
      : plan_(plan), rows_(rows), outs_(outs), row_bytes_(row_bytes) {}

  absl::Span<const absl::Span<std::byte>> outs() const { return outs_; }
  // Of all rows of the call.
  uint64_t size_bytes() const {
    return uint64_t{rows_.row_count()} * row_bytes_;
  }

  // `bytes` are those that begin at `offset_bytes` in the packed rows.
  // REQUIRES: offset_bytes + bytes.size() <= size_bytes().
  void Write(uint64_t offset_bytes, absl::Span<const std::byte> bytes) const;

 private:
  // A part of one row.
  void WriteRowPart(const CallRows::Run& run, uint32_t row, size_t offset,
                    absl::Span<const std::byte> bytes) const;
  // Whole rows of one run.
  void WriteRows(const CallRows::Run& run, uint32_t row,
                 absl::Span<const std::byte> bytes) const;

  const GatherPlan& plan_;
  const CallRows& rows_;
  const absl::Span<const absl::Span<std::byte>> outs_;
  const size_t row_bytes_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_

#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engram_client/plan/gather_plan.h"

namespace engram {

// Copies the packed rows of one call to every slot that asked for them. The
// bytes come in order and in pieces of any size, as a transport has them.
//
// Thread safety: none. Scatters of different rows of one plan may run at the
// same time: they write to different slots.
class RowScatter {
 public:
  // `outs`: the buffer of each layer of the plan. `parts`: what the call asked
  // for, in order. `plan` and the buffers must outlive the scatter.
  RowScatter(const GatherPlan& plan,
             absl::Span<const absl::Span<std::byte>> outs, size_t row_bytes,
             absl::Span<const GatherPlan::Part> parts);

  // Bytes that are still to come.
  uint64_t missing_bytes() const { return missing_bytes_; }

  // REQUIRES: bytes.size() <= missing_bytes().
  void Append(absl::Span<const std::byte> bytes);

 private:
  void ScatterRow(const std::byte* row);

  const GatherPlan& plan_;
  const absl::Span<const absl::Span<std::byte>> outs_;
  const size_t row_bytes_;
  const absl::Span<const GatherPlan::Part> parts_;
  size_t part_ = 0;   // index of the part that the next row belongs to
  uint32_t row_ = 0;  // the next row, within that part
  uint64_t missing_bytes_ = 0;
  std::vector<std::byte> split_row_;  // start of a row that a piece cut
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_ROW_SCATTER_H_

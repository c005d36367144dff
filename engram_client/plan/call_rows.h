#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_CALL_ROWS_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_CALL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/plan/gather_plan.h"

namespace engram {

// The rows of one call in the order in which it asks for them: by layer, then
// by the first slot that wants them. So a reply is written to the caller's
// buffer from front to back, whatever the row ids.
//
// No allocation per row. Immutable once made.
class CallRows {
 public:
  // Rows [begin, end) of the call are of this layer.
  struct Run {
    uint32_t layer_index = 0;  // into the gather's layers
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  // The rows of several calls of one gather: in one walk over the plan where
  // they have much of it, else call by call. Each call is a list of parts of
  // `plan`, or pieces of them, in any order; no row may be in two.
  static std::vector<CallRows> Order(
      const GatherPlan& plan,
      absl::Span<const absl::Span<const GatherPlan::Part>> calls);

  uint32_t row_count() const { return row_count_; }
  // Ascending by layer_index; they cover all rows once.
  absl::Span<const Run> runs() const { return runs_; }
  absl::Span<const RowId> row_ids() const {
    return {numbers_.get(), row_count_};
  }
  // The first slot of each row, ascending within a run.
  absl::Span<const uint32_t> first_slots() const {
    return {numbers_.get() + row_count_, row_count_};
  }

 private:
  static std::vector<CallRows> OrderAll(
      const GatherPlan& plan,
      absl::Span<const absl::Span<const GatherPlan::Part>> calls);
  static CallRows OrderOne(const GatherPlan& plan,
                           absl::Span<const GatherPlan::Part> parts);

  explicit CallRows(uint32_t row_count)
      : row_count_(row_count),
        numbers_(
            std::make_unique_for_overwrite<uint32_t[]>(2 * size_t{row_count})) {
  }

  uint32_t row_count_;
  std::unique_ptr<uint32_t[]> numbers_;  // row ids, then first slots
  std::vector<Run> runs_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_CALL_ROWS_H_

#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/table_client.h"

namespace engram {

// The distinct rows of one gather, in the order in which the caller's buffers
// want them, and grouped by partition.
//
//   ids of a layer:   31  9 17 30  9 31      partitions of 16 rows
//   unique rows:      31  9 17 30            first slots: 0 1 2 3
//   by partition:     1 | 0 2 3              parts: {0: 9}, {1: 31 17 30}
//   next slots:       5  4  -  -  -  -       31 goes to slots 0 and 5
//
// A pure function of its input: the same ids give the same plan. No allocation
// per row. Immutable once made, but for LeaveOut; it keeps no reference to the
// caller's ids.
class GatherPlan {
 public:
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  // Rows of one partition: [begin, end) of by_partition().
  struct Part {
    uint32_t layer_index = 0;  // into the gather's layers
    PartitionId partition{};
    uint32_t begin = 0;
    uint32_t end = 0;

    uint32_t rows() const { return end - begin; }
  };

  // Unique rows [begin, end) are of this layer.
  struct Layer {
    uint32_t layer_index = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  // REQUIRES: CheckGather passed; partition_rows is a power of two.
  GatherPlan(absl::Span<const LayerGather> layers, uint64_t partition_rows);
  GatherPlan(const GatherPlan&) = delete;
  GatherPlan& operator=(const GatherPlan&) = delete;

  // Unique row i is not to be asked for where found[i]: parts() and
  // by_partition() lose it, the rest stays as it is. Before anybody uses them.
  void LeaveOut(const std::vector<bool>& found);

  // Those that have rows, ascending by layer_index.
  absl::Span<const Layer> layers() const { return layers_; }
  // Ascending by (layer_index, partition); they cover by_partition() once.
  absl::Span<const Part> parts() const { return parts_; }

  absl::Span<const RowId> unique_rows() const { return {rows_, unique_count_}; }
  // The first slot of its layer's buffer that wants each unique row, ascending
  // within a layer.
  absl::Span<const uint32_t> first_slots() const {
    return {first_slots_, unique_count_};
  }
  // Indices of unique rows, ascending within a part.
  absl::Span<const uint32_t> by_partition() const {
    return {by_partition_, asked_count_};
  }
  // For each slot of a layer's buffer the next one that wants the same row, or
  // kNoSlot.
  absl::Span<const uint32_t> next_slots(uint32_t layer_index) const {
    return next_slots_[layer_index];
  }
  uint64_t row_count() const { return row_count_; }

 private:
  struct Scratch;
  // Appends the distinct `ids` behind the unique rows; how many they are.
  size_t FindDistinct(absl::Span<const RowId> ids, Scratch& scratch);
  void AddParts(uint32_t layer_index, size_t unique, int partition_shift,
                Scratch& scratch);

  size_t unique_count_ = 0;
  size_t asked_count_ = 0;  // of these, in by_partition_
  size_t row_count_ = 0;
  // One block, never cleared: what follows lies in it.
  std::unique_ptr<uint32_t[]> numbers_;
  RowId* rows_ = nullptr;
  uint32_t* first_slots_ = nullptr;
  uint32_t* by_partition_ = nullptr;
  uint32_t* all_next_slots_ = nullptr;
  std::vector<absl::Span<const uint32_t>> next_slots_;  // by layer index
  std::vector<Layer> layers_;
  std::vector<Part> parts_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_

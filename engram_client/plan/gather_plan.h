#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/table_client.h"

namespace engram {

// The distinct rows of one gather, ascending within each layer, so that the
// rows of a partition stand together and a server reads them in memory order.
//
//   rows:       | layer 0: r0 < r1 < ...        | layer 1: ...      |
//   positions:  | slots of r0 | slots of r1 |...| slots of ... | ...|
//
// A pure function of its input: the same ids give the same plan. No allocation
// per row. Immutable once made; it keeps no reference to the caller's ids.
class GatherPlan {
 public:
  // Distinct rows [begin, end) of one partition.
  struct Part {
    uint32_t layer_index = 0;  // into the gather's layers
    PartitionId partition{};
    uint32_t begin = 0;
    uint32_t end = 0;

    uint32_t rows() const { return end - begin; }
  };

  // REQUIRES: CheckGather passed; partition_rows is a power of two.
  GatherPlan(absl::Span<const LayerGather> layers, uint64_t partition_rows);

  // Ascending by (layer_index, partition); they cover unique_rows() once.
  absl::Span<const Part> parts() const { return parts_; }
  absl::Span<const RowId> unique_rows() const { return rows_; }
  // Slots of the layer's buffer that want unique row `index`, ascending.
  absl::Span<const uint32_t> positions(uint32_t index) const {
    return absl::MakeConstSpan(positions_)
        .subspan(first_position_[index],
                 first_position_[index + 1] - first_position_[index]);
  }
  uint64_t row_count() const { return positions_.size(); }

 private:
  void AddLayer(uint32_t layer_index, int partition_shift,
                absl::Span<const uint64_t> sorted_keys);

  std::vector<RowId> rows_;
  std::vector<uint32_t> first_position_;  // one more than rows_
  std::vector<uint32_t> positions_;
  std::vector<Part> parts_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_GATHER_PLAN_H_

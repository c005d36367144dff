#ifndef ENGRAM_CORE_PLACEMENT_PLACEMENT_H_
#define ENGRAM_CORE_PLACEMENT_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// A server that may own partitions. Capacity is relative: a server of 2.0
// gets twice the partitions of one of 1.0.
struct PlacementMember {
  std::string name;
  double capacity = 1.0;
};

struct PlacementLayer {
  LayerId layer_id;
  uint32_t partition_count = 0;
};

// Who owns which partition: a pure function of its inputs, so that nobody has
// to coordinate. Weighted, bounded rendezvous hashing: partitions in order;
// owners are the R members of the highest weighted hash of (table, layer,
// partition, name) whose share of that layer is not yet full (1.03 of it,
// rounded up; never exceeded). A share is R * partition_count * capacity /
// total capacity; where that is more than partition_count, the member gets
// every partition and the others share the rest. The order of `members` does
// not matter.
//
// Immutable; built once for a member list (11,720 partitions x 32 members:
// some milliseconds).
class Placement {
 public:
  struct Options {
    std::string table;  // stable over versions of a table
    std::vector<PlacementLayer> layers;
    std::vector<PlacementMember> members;
    uint32_t replicas = 1;
  };

  static constexpr size_t kMaxMembers = 4096;

  // INVALID_ARGUMENT: no members or more than kMaxMembers, two of one name, an
  // empty name, a capacity that is not above 0 and finite, two layers of one
  // id, replicas of 0. More replicas than members gives every member every
  // partition. A capacity below a millionth of the largest counts as that.
  static absl::StatusOr<Placement> Create(Options options);

  // Indices into members(), best first; min(replicas, members) of them.
  absl::Span<const uint32_t> Owners(size_t layer_index,
                                    PartitionId partition) const;
  // Ascending. NOT_FOUND: no such member.
  absl::StatusOr<std::vector<PartitionRef>> OwnedBy(
      absl::string_view member_name) const;

  absl::Span<const PlacementMember> members() const { return members_; }
  absl::Span<const PlacementLayer> layers() const { return layers_; }

 private:
  std::vector<PlacementLayer> layers_;
  std::vector<PlacementMember> members_;  // sorted by name
  uint32_t owners_per_partition_ = 0;
  std::vector<std::vector<uint32_t>> owners_;  // [layer][partition * R + i]
};

}  // namespace engram

#endif  // ENGRAM_CORE_PLACEMENT_PLACEMENT_H_

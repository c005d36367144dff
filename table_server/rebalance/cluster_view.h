#ifndef ENGRAM_TABLE_SERVER_REBALANCE_CLUSTER_VIEW_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_CLUSTER_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/membership/member.h"
#include "core/model/manifest.h"
#include "core/placement/placement.h"

namespace engram {

// The members as one server sees them, and who owns what by that. Servers with
// the same digest agree on every owner. Immutable; made once for a change
// (11,720 partitions x 32 members: some milliseconds).
class ClusterView {
 public:
  struct Options {
    std::string self;
    std::vector<Member> members;  // none: all have left, nobody owns anything
    uint32_t replicas = 1;
    std::vector<LayerId> layers;  // to place; empty: all of the table
  };

  // INVALID_ARGUMENT: as Placement::Create, or a layer that the table lacks or
  // that is named twice. `self` need not be a member: then it owns nothing.
  static absl::StatusOr<std::shared_ptr<const ClusterView>> Create(
      const Manifest& manifest, Options options);

  // XXH3-128, 32 hex digits, of table, layers, replicas, names and capacities.
  const std::string& digest() const { return digest_; }
  const std::vector<Member>& members() const { return members_; }  // by name
  uint32_t replicas() const { return replicas_; }

  // What `self` owns, ascending.
  const std::vector<PartitionRef>& owned() const { return owned_; }
  bool Owns(size_t layer_index, PartitionId partition) const;
  // Indices into members(). None for a layer that is not placed.
  // `layer_index`: of the manifest.
  absl::Span<const uint32_t> Owners(size_t layer_index,
                                    PartitionId partition) const;
  // Whether any layer's partitions of this index are placed.
  bool IsPlaced(size_t layer_index) const;

 private:
  // A layer of the manifest.
  struct Layer {
    uint32_t partition_count = 0;
    std::optional<size_t> placed_as;  // its index in placement_
    std::vector<bool> owned;          // by `self`; empty: nothing is
  };

  ClusterView() = default;

  std::string digest_;
  std::vector<Member> members_;
  uint32_t replicas_ = 0;
  std::vector<Layer> layers_;
  std::optional<Placement> placement_;  // none: no members
  std::vector<PartitionRef> owned_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_CLUSTER_VIEW_H_

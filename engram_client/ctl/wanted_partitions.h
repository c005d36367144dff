#ifndef ENGRAM_ENGRAM_CLIENT_CTL_WANTED_PARTITIONS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_WANTED_PARTITIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "core/membership/member.h"
#include "core/model/manifest.h"

namespace engram::ctl {

// Which partitions of a table are meant.
struct PartitionChoice {
  std::vector<LayerId> layers;  // empty: all
  // Only what `server_name` owns among these; none: everything.
  std::vector<Member> members;
  std::string server_name;
  uint32_t replicas = 1;
};

// Ascending; what a table server with the same members, replicas and layers
// owns. INVALID_ARGUMENT: a layer that the table does not have, or that stands
// twice; a name that is no member's; as Placement::Create.
absl::StatusOr<std::vector<PartitionRef>> WantedPartitions(
    const Manifest& manifest, const PartitionChoice& choice);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_WANTED_PARTITIONS_H_

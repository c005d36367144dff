#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PLAN_MOVES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PLAN_MOVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/placement/placement.h"
#include "engram_client/table_client.h"

namespace engram::ctl {

// Who is a member and how many of them own each partition.
struct Ownership {
  std::vector<PlacementMember> members;
  uint32_t replicas = 1;
};

struct PartitionSum {
  uint64_t partitions = 0;
  uint64_t bytes = 0;  // of packed rows

  friend bool operator==(const PartitionSum&, const PartitionSum&) = default;
};

// A server before or after the change.
struct MemberEnd {
  bool is_member = false;
  double capacity = 0;
  PartitionSum owned;
  double share = 0;  // partitions that its capacity gives it a right to

  double of_share() const {
    return share > 0 ? static_cast<double>(owned.partitions) / share : 0;
  }
};

struct MemberMoves {
  std::string name;
  MemberEnd now;
  MemberEnd then;
  PartitionSum to_receive;
  PartitionSum to_give_up;

  // While it moves: nothing is given up before its new owners have it.
  uint64_t peak_bytes() const { return now.owned.bytes + to_receive.bytes; }
};

struct MovePlan {
  PartitionSum table;  // one copy of it
  uint32_t replicas_now = 0;
  uint32_t replicas_then = 0;
  std::vector<MemberMoves> members;  // by name
  PartitionSum moved;                // what all members receive
  // What any way to the same sums of each member and layer moves at least.
  PartitionSum least;
};

// What a change from `now` to `then` moves between the servers of a table.
// `table_name` as in Placement::Options. INVALID_ARGUMENT: as Placement.
absl::StatusOr<MovePlan> PlanMoves(const TableInfo& table,
                                   const std::string& table_name,
                                   const Ownership& now, const Ownership& then);

// The member with the most of its share at one end; null if there is none.
const MemberMoves* Fullest(const MovePlan& plan, MemberEnd MemberMoves::*end);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PLAN_MOVES_H_

#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PLAN_INPUT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PLAN_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/membership/member.h"
#include "core/model/manifest.h"
#include "engram_client/ctl/plan_moves.h"
#include "engram_client/ctl/probes.h"
#include "engram_client/table_client.h"

namespace engram::ctl {

// What is placed: the shapes of a table and the name that placement knows it
// by.
struct PlannedTable {
  // Of every table that this project makes; servers do not tell it.
  std::string name = "engram";
  TableInfo info;  // of a preset: without a version
};
PlannedTable TableOfManifest(const Manifest& manifest);
absl::StatusOr<PlannedTable> TableOfPreset(absl::string_view preset);

// Leaves only `layers`, a list "1,14". NOT_FOUND: a layer it does not have.
absl::Status KeepLayers(absl::string_view layers, TableInfo& table);

std::vector<PlacementMember> ToPlacement(absl::Span<const Member> members);

// `members` and those that the list `add` names, of capacity 1, without those
// that `remove` does. INVALID_ARGUMENT: one that is a member already, or is
// none; a bad name.
absl::StatusOr<std::vector<PlacementMember>> ChangeMembers(
    std::vector<PlacementMember> members, absl::string_view add,
    absl::string_view remove);

// What the servers of a cluster say of it: the view of most of them.
struct PresentCluster {
  Ownership ownership;
  std::string address;  // of a server that sees it so
  std::vector<std::string> notes;
};
// UNAVAILABLE: nobody answered; UNIMPLEMENTED: only servers of older releases
// did; FAILED_PRECONDITION: none has a view yet, or they serve several tables.
absl::StatusOr<PresentCluster> PresentOf(absl::Span<const ServerProbe> servers);

// Where a server says that it owns another number of partitions than the plan
// gives it now: the plan is of another table or of other layers than it.
std::vector<std::string> OwnedOtherwise(absl::Span<const ServerProbe> servers,
                                        const MovePlan& plan);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PLAN_INPUT_H_

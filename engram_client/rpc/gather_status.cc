#include "engram_client/rpc/gather_status.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"

namespace engram {

absl::Status CallStatus(const GatherNames& names, const GatherCall& call,
                        const absl::Status& status) {
  return Annotate(status,
                  absl::StrCat("table ", names.version, ", ",
                               PartitionsText(PartsOf(call.planned.segments),
                                              names.layer_ids),
                               " from ", call.planned.server_label));
}

absl::Status DeadlineStatus(const GatherNames& names, const GatherQueue& queue,
                            const CallsInFlight& in_flight,
                            const absl::Status& last_failure,
                            const std::string& problems) {
  std::vector<GatherPlan::Part> left = queue.AllParts();
  std::string why =
      queue.waiting().empty() ? "" : "; no ready server has all of them";
  for (const GatherCallPtr& call : in_flight.calls()) {
    const std::vector<GatherPlan::Part> asked = PartsOf(call->planned.segments);
    left.insert(left.end(), asked.begin(), asked.end());
    absl::StrAppend(&why, "; no answer from ", call->planned.server_label,
                    " for ", PartitionsText(asked, names.layer_ids));
  }
  if (!last_failure.ok()) {
    absl::StrAppend(&why, "; last failure: ", last_failure.message());
  }
  if (!problems.empty()) absl::StrAppend(&why, "; ", problems);
  return absl::DeadlineExceededError(
      absl::StrCat("table ", names.version, ": deadline passed without ",
                   PartitionsText(left, names.layer_ids), why));
}

}  // namespace engram

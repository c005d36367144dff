#include "engram_client/rpc/gather_status.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

// With what the message alone would lose.
std::string KindAndMessage(const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  return absl::StrCat(reason != ErrorReason::kNone
                          ? ReasonName(reason)
                          : absl::StatusCodeToString(status.code()),
                      ": ", status.message());
}

}  // namespace

void FailedTries::Note(const absl::Status& failure) {
  // Where rows are not says less than why they could not be had.
  if (last_.ok() || NeedsToken(failure)) last_ = failure;
  if (first_.ok() || !NeedsToken(first_)) first_ = last_;
}

std::string FailedTries::Text() const {
  if (!any()) return "";
  const std::string last =
      absl::StrCat("last failure: ", KindAndMessage(last_));
  if (first_ == last_) return last;
  return absl::StrCat("first failure: ", KindAndMessage(first_), "; ", last);
}

absl::Status FailedTries::WithFirst(const absl::Status& end) const {
  if (!any() || first_ == end) return end;
  return WithMessage(
      end,
      absl::StrCat(end.message(), "; first failure: ", KindAndMessage(first_)));
}

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
                            const FailedTries& failed,
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
  if (failed.any()) absl::StrAppend(&why, "; ", failed.Text());
  if (!problems.empty()) absl::StrAppend(&why, "; ", problems);
  return absl::DeadlineExceededError(
      absl::StrCat("table ", names.version, ": deadline passed without ",
                   PartitionsText(left, names.layer_ids), why));
}

}  // namespace engram

#include "engram_client/compute/attempts.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_annotate.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/backoff.h"

namespace engram {

absl::StatusOr<std::unique_ptr<WorkerSet::Lease>> Attempts::Next() {
  while (true) {
    auto lease = workers_->Take(avoid_, deadline_);
    if (!lease.ok()) return WithLastFailure(lease.status());
    if (*lease != nullptr) return lease;
    if (absl::Now() >= deadline_) {
      return WithLastFailure(
          absl::DeadlineExceededError("no compute worker took the step"));
    }
    WaitForNextRound();
  }
}

bool Attempts::MayRetry(const WorkerSet::Lease& lease,
                        const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  const bool overloaded = reason == ErrorReason::kOverloaded;
  if (!absl::IsUnavailable(status) && !overloaded &&
      reason != ErrorReason::kWrongTable) {
    return false;
  }
  if (!overloaded) workers_->MarkDown(lease.index(), status);
  avoid_[lease.index()] = true;
  last_failure_ =
      Annotate(status, absl::StrCat("worker ", lease.link().address()));
  return true;
}

void Attempts::HeardNothing(const WorkerSet::Lease& lease) {
  workers_->MarkDown(lease.index(), absl::DeadlineExceededError(
                                        "it did not answer a step in time"));
}

absl::Status Attempts::GiveUp(const WorkerSet::Lease& lease,
                              const absl::Status& status) const {
  const absl::Status named =
      Annotate(status, absl::StrCat("worker ", lease.link().address()));
  return absl::IsDeadlineExceeded(named) ? WithLastFailure(named) : named;
}

absl::Status Attempts::WithLastFailure(const absl::Status& status) const {
  if (last_failure_.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; the last failure: ",
                                   last_failure_.message()));
}

void Attempts::WaitForNextRound() {
  const absl::Duration delay =
      std::max(RetryAfterOf(last_failure_).value_or(absl::ZeroDuration()),
               BackoffDelay({}, ++rounds_));
  absl::SleepFor(std::min(delay, deadline_ - absl::Now()));
  std::fill(avoid_.begin(), avoid_.end(), false);
}

}  // namespace engram

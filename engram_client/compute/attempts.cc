#include "engram_client/compute/attempts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/backoff.h"
#include "core/base/status_annotate.h"
#include "core/wire/error_detail.h"

namespace engram {

Attempts::Attempts(WorkerSet* workers, StepMonitor* monitor,
                   const StepWork& work, absl::Time deadline)
    : workers_(workers),
      monitor_(monitor),
      work_(work),
      deadline_(deadline),
      avoid_(workers->size(), false) {
  monitor_->StepStarted();
}

absl::StatusOr<std::unique_ptr<WorkerSet::Lease>> Attempts::Next() {
  if (std::exchange(is_retry_, false) && !monitor_->MayRetryAtOnce()) {
    WaitForNextRound();
  }
  while (true) {
    auto lease = workers_->Take(avoid_, deadline_);
    if (!lease.ok()) return WithLastFailure(lease.status());
    if (*lease != nullptr) {
      AwaitOne();
      return lease;
    }
    if (absl::Now() >= deadline_) {
      return WithLastFailure(
          absl::DeadlineExceededError("no compute worker took the step"));
    }
    WaitForNextRound();
  }
}

bool Attempts::MayRetry(const WorkerSet::Lease& lease,
                        const absl::Status& status) {
  avoid_[lease.index()] = true;
  const ErrorReason reason = ReasonOf(status);
  const bool overloaded = reason == ErrorReason::kOverloaded;
  if (!absl::IsUnavailable(status) && !overloaded &&
      reason != ErrorReason::kWrongTable) {
    return false;
  }
  if (!overloaded) workers_->MarkDown(lease.index(), status);
  is_retry_ = true;
  last_failure_ =
      Annotate(status, absl::StrCat("worker ", lease.link().address()));
  return true;
}

void Attempts::AwaitOne() {
  hedge_wait_ = monitor_->HedgeDelay(work_);
  const absl::Time now = absl::Now();
  hedge_at_ = now + std::min(hedge_wait_, (deadline_ - now) / 2);
}

void Attempts::AwaitTheOther() {
  hedge_wait_ =
      std::max(2 * hedge_wait_,
               RetryAfterOf(last_failure_).value_or(absl::ZeroDuration()));
  hedge_at_ = absl::Now() + hedge_wait_;
}

std::unique_ptr<WorkerSet::Lease> Attempts::Hedge(
    const WorkerSet::Lease& silent) {
  hedge_at_ = absl::InfiniteFuture();
  if (absl::Now() >= deadline_) return nullptr;
  std::vector<bool> avoid = avoid_;
  avoid[silent.index()] = true;
  auto lease = workers_->TakeForHedge(avoid);
  if (lease != nullptr &&
      monitor_->MayHedge(workers_->IsSuspect(silent.index()))) {
    return lease;
  }
  // All that could take it have failed: the next time they may again.
  if (lease == nullptr) std::fill(avoid_.begin(), avoid_.end(), false);
  hedge_wait_ *= 2;
  hedge_at_ = absl::Now() + hedge_wait_;
  return nullptr;
}

void Attempts::Answered(const WorkerSet::Lease& lease, absl::Duration time) {
  monitor_->Took(work_, time);
  workers_->Answered(lease.index());
}

void Attempts::HedgeWon(const WorkerSet::Lease& silent) {
  monitor_->HedgeWon();
  if (workers_->Silent(silent.index())) monitor_->WorkerEjected();
}

void Attempts::HeardNothing(const WorkerSet::Lease& lease) {
  if (workers_->HeardNothing(lease.index())) monitor_->WorkerEjected();
}

absl::Status Attempts::GiveUp(const WorkerSet::Lease& lease,
                              const absl::Status& status) const {
  const absl::Status named =
      Annotate(status, absl::StrCat("worker ", lease.link().address()));
  return absl::IsDeadlineExceeded(named) ? WithLastFailure(named) : named;
}

absl::Status Attempts::Failed(const WorkerSet::Lease& lease,
                              const absl::Status& status, bool other_goes_on) {
  const bool again = MayRetry(lease, status);
  if (other_goes_on) AwaitTheOther();
  return again || other_goes_on ? absl::OkStatus() : GiveUp(lease, status);
}

absl::Status Attempts::WithLastFailure(const absl::Status& status) const {
  if (last_failure_.ok()) return status;
  return WithMessage(status, absl::StrCat(status.message(), "; last failure: ",
                                          last_failure_.message()));
}

void Attempts::WaitForNextRound() {
  const absl::Duration delay =
      std::max(RetryAfterOf(last_failure_).value_or(absl::ZeroDuration()),
               BackoffDelay({}, ++waits_));
  absl::SleepFor(std::min(delay, deadline_ - absl::Now()));
  std::fill(avoid_.begin(), avoid_.end(), false);
}

}  // namespace engram

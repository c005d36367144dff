#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engram_client/compute/step_monitor.h"
#include "engram_client/compute/worker_set.h"

namespace engram {

// Where a step is tried, one worker after another, until its deadline, and on
// a second one when the first is silent. Steps are pure, so one that may have
// run is simply run again.
//
// Not synchronised.
class Attempts {
 public:
  // `work`: what is waited for at a time.
  Attempts(WorkerSet* workers, StepMonitor* monitor, const StepWork& work,
           absl::Time deadline);

  // The worker for the next attempt. After each ready one has failed, waits
  // as long as the last answer asked for, or a growing while, and goes round
  // again. The error names the last failure.
  absl::StatusOr<std::unique_ptr<WorkerSet::Lease>> Next();

  // Whether a step that failed so may be tried elsewhere: its worker was
  // down, draining or not ready (UNAVAILABLE), OVERLOADED, or has come back
  // with another version (WRONG_TABLE). Remembers the worker in any case.
  bool MayRetry(const WorkerSet::Lease& lease, const absl::Status& status);

  // The work goes on at one worker only from now on: it will be hedged at
  // hedge_at() unless it is answered.
  void AwaitOne();
  absl::Time hedge_at() const { return hedge_at_; }
  // At hedge_at(): another worker that is ready, for the same work. Null, and a
  // later hedge_at(): there is none, or no budget. Else, and after the
  // deadline, hedge_at() is never.
  std::unique_ptr<WorkerSet::Lease> Hedge(const WorkerSet::Lease& silent);

  // `time`: since the work was sent there.
  void Answered(const WorkerSet::Lease& lease, absl::Duration time);
  // Another one answered what was asked of this one first.
  void HedgeWon(const WorkerSet::Lease& silent);
  // The deadline passed without a word of the worker about the step: it gets
  // no other before it has told its model again.
  void HeardNothing(const WorkerSet::Lease& lease);

  // What the caller is told of a failure that is not retried: names the
  // worker, and what had failed before when the time is over.
  absl::Status GiveUp(const WorkerSet::Lease& lease,
                      const absl::Status& status) const;

  // The work failed at this worker. OK: it goes on at the other one that has it
  // too, or may be tried elsewhere; else what the caller is told.
  absl::Status Failed(const WorkerSet::Lease& lease, const absl::Status& status,
                      bool other_goes_on);

  absl::Time deadline() const { return deadline_; }

 private:
  // One of two has failed: the other is hedged again, but later than the time
  // before, so that one that always fails costs little.
  void AwaitTheOther();
  absl::Status WithLastFailure(const absl::Status& status) const;
  // As long as the last answer asked for, or a growing while.
  void WaitForNextRound();

  WorkerSet* const workers_;
  StepMonitor* const monitor_;
  const StepWork work_;
  const absl::Time deadline_;
  std::vector<bool> avoid_;  // have failed in this round
  bool is_retry_ = false;    // the next one, and has not been counted
  uint32_t waits_ = 0;
  absl::Status last_failure_;
  absl::Duration hedge_wait_;
  absl::Time hedge_at_ = absl::InfiniteFuture();
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_

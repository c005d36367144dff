#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engram_client/compute/worker_set.h"

namespace engram {

// Where a step is tried, one worker after another, until its deadline. Steps
// are pure, so one that may have run is simply run again.
//
// Not synchronised.
class Attempts {
 public:
  Attempts(WorkerSet* workers, absl::Time deadline)
      : workers_(workers),
        deadline_(deadline),
        avoid_(workers->size(), false) {}

  // The worker for the next attempt. After each ready one has failed, waits
  // as long as the last answer asked for, or a growing while, and goes round
  // again. The error names the last failure.
  absl::StatusOr<std::unique_ptr<WorkerSet::Lease>> Next();

  // Whether a step that failed so may be tried elsewhere: its worker was
  // down, draining or not ready (UNAVAILABLE), OVERLOADED, or has come back
  // with another version (WRONG_TABLE). Remembers the worker.
  bool MayRetry(const WorkerSet::Lease& lease, const absl::Status& status);

  // The deadline passed without a word of the worker about the step: it gets
  // no other before it has told its model again.
  void HeardNothing(const WorkerSet::Lease& lease);

  // What the caller is told of a failure that is not retried: names the
  // worker, and what had failed before when the time is over.
  absl::Status GiveUp(const WorkerSet::Lease& lease,
                      const absl::Status& status) const;

  absl::Time deadline() const { return deadline_; }

 private:
  absl::Status WithLastFailure(const absl::Status& status) const;
  void WaitForNextRound();

  WorkerSet* const workers_;
  const absl::Time deadline_;
  std::vector<bool> avoid_;  // have failed in this round
  uint32_t rounds_ = 0;
  absl::Status last_failure_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_ATTEMPTS_H_

// The part of WorkerSet that leaves workers which are silent.
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/backoff.h"
#include "engram_client/compute/worker_set.h"

namespace engram {
namespace {

constexpr uint32_t kMaxSilences = 3;  // in a row
constexpr uint32_t kTrialAnswers = 3;
constexpr BackoffOptions kEjection = {.first = absl::Milliseconds(100),
                                      .longest = absl::Seconds(10)};

}  // namespace

void WorkerSet::Answered(size_t index) {
  MutexLock lock(&mutex_);
  Worker& worker = workers_[index];
  worker.silences = 0;
  if (worker.trial > 0 && worker.state == State::kReady) {
    if (--worker.trial == 0) worker.ejections = 0;
  }
}

bool WorkerSet::Silent(size_t index) {
  MutexLock lock(&mutex_);
  Worker& worker = workers_[index];
  ++worker.silences;
  if (worker.state != State::kReady) return false;
  if (worker.trial == 0 && worker.silences < kMaxSilences) return false;
  if (!MayEject(index)) return false;
  Eject(index, "it was silent while others answered");
  return true;
}

bool WorkerSet::HeardNothing(size_t index) {
  MutexLock lock(&mutex_);
  ++workers_[index].silences;
  if (workers_[index].state != State::kReady) return false;
  constexpr absl::string_view kWhy = "it did not answer a step in time";
  if (MayEject(index)) {
    Eject(index, kWhy);
    return true;
  }
  SetDown(index, absl::DeadlineExceededError(kWhy));
  return false;
}

bool WorkerSet::IsSuspect(size_t index) const {
  MutexLock lock(&mutex_);
  return workers_[index].silences > 0 || workers_[index].trial > 0;
}

void WorkerSet::Eject(size_t index, absl::string_view why) {
  Worker& worker = workers_[index];
  worker.state = State::kDown;
  worker.error = absl::DeadlineExceededError(why);
  worker.trial = kTrialAnswers;
  AskAfter(index, BackoffDelay(kEjection, ++worker.ejections));
}

bool WorkerSet::MayEject(size_t index) const {
  size_t out = 1;
  size_t well = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (i == index) continue;
    // One that does not tell its model either is down, not left.
    if (workers_[i].trial > 0 && workers_[i].failures == 0) {
      ++out;
    } else if (workers_[i].state == State::kReady) {
      ++well;
    }
  }
  return out <= well;
}

}  // namespace engram

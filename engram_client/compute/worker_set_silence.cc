// The part of WorkerSet that leaves workers which are silent.
#include "absl/status/status.h"
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
  const auto why =
      absl::DeadlineExceededError("it was silent while others answered");
  {
    MutexLock lock(&mutex_);
    Worker& worker = workers_[index];
    ++worker.silences;
    if (worker.state != State::kReady) return false;
    if (worker.trial == 0 && worker.silences < kMaxSilences) return false;
    if (!MayEject(index)) return false;
    Eject(index, why);
  }
  LogLeft(index, why);
  return true;
}

bool WorkerSet::HeardNothing(size_t index) {
  const auto why =
      absl::DeadlineExceededError("it did not answer a step in time");
  bool eject = false;
  {
    MutexLock lock(&mutex_);
    ++workers_[index].silences;
    if (workers_[index].state != State::kReady) return false;
    eject = MayEject(index);
    if (eject) {
      Eject(index, why);
    } else {
      SetDown(index, why);
    }
  }
  LogLeft(index, why);
  return eject;
}

bool WorkerSet::IsSuspect(size_t index) const {
  MutexLock lock(&mutex_);
  return workers_[index].silences > 0 || workers_[index].trial > 0;
}

void WorkerSet::Eject(size_t index, const absl::Status& why) {
  Worker& worker = workers_[index];
  worker.state = State::kDown;
  worker.error = why;
  worker.trial = kTrialAnswers;
  CountReady();
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

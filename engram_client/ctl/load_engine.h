#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ENGINE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/ctl/load_recorder.h"
#include "engram_client/ctl/load_results.h"
#include "engram_client/ctl/load_schedule.h"
#include "engram_client/ctl/load_slots.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

// Open-loop load: calls are sent when the schedule has them, whatever became
// of those before.
//
// Each issuing thread takes the next call of the schedule, prepares it, sleeps
// until its time and sends it. When a call ends, on whatever thread, the time
// is taken and its slot is queued for a check thread, which compares and
// records it and frees the slot. A call that comes while max_in_flight are
// unanswered or unchecked is counted as not sent and forgotten.
class LoadEngine {
 public:
  struct Options {
    LoadSchedule::Options schedule;  // its end follows from the two below
    absl::Duration warmup;
    absl::Duration duration;
    absl::Duration deadline;  // of a call, from when it is sent
    size_t max_in_flight = 1;
    size_t threads = 1;
    size_t check_threads = 1;
    // How long calls may stay after the deadline of the last one, or after an
    // end that the user asked for, before the run ends without them.
    absl::Duration grace = absl::Seconds(5);
  };
  struct Hooks {
    // Waits for at most so long; true once the user wants the run to end.
    std::function<bool(absl::Duration)> wait;
    std::function<void(const LoadSecond&)> on_second;
  };

  // Slots that the target must have: one each for the calls in flight, and
  // one for what each thread has prepared.
  static size_t SlotCount(const Options& options) {
    return options.max_in_flight + options.threads;
  }

  // `target` outlives the engine.
  LoadEngine(const Options& options, LoadTarget* target);
  // Waits for every call that is unanswered.
  ~LoadEngine();
  LoadEngine(const LoadEngine&) = delete;
  LoadEngine& operator=(const LoadEngine&) = delete;

  // Until the schedule's end and the last answer; ends at once on wrong
  // content. Called once; hooks are called on this thread.
  LoadResults Run(const Hooks& hooks);

 private:
  // A call between Start and Finish.
  struct Call {
    LoadRecorder::Which which;
    absl::Time due;
    absl::Time deadline;  // both on the steady clock
    absl::Time ended;
    absl::Status status;
    std::atomic<int> awaited = 0;  // Start's return, `done`
  };

  void Issue();
  std::optional<LoadCall> NextCall();
  bool SleepUntil(absl::Time due);  // false: the run ends
  LoadRecorder::Which WhichOf(const LoadCall& call) const;
  void CountNotSent(const LoadCall& call);
  // False: too many are in flight, and the slot is still the caller's.
  bool TrySend(size_t slot, const LoadCall& call, absl::Time due);
  // Of the two that are awaited, one has come.
  void Came(size_t slot);
  void CheckAnswers();
  void Finish(size_t slot);

  // Until the schedule's end or Stop.
  void WatchIssuing(const Hooks& hooks);
  void AwaitLastCalls(const Hooks& hooks);
  // A moment of either.
  void Tick(const Hooks& hooks);
  void CutSecond(const Hooks& hooks);
  double SecondsSinceWarmup() const;

  void Stop();
  bool stopped() const;

  const Options options_;
  LoadTarget& target_;
  LoadRecorder recorder_;
  absl::Time start_;  // constant once threads run

  // Of Run's thread.
  absl::Time next_second_;
  bool interrupted_ = false;

  LoadSlots slots_;
  std::vector<Call> calls_;  // by slot
  std::atomic<size_t> in_flight_ = 0;
  std::atomic<size_t> unchecked_ = 0;  // of them
  std::atomic<size_t> issuing_ = 0;    // threads
  std::atomic<bool> broken_ = false;   // wrong content, or nothing to compare

  Mutex schedule_mutex_;
  LoadSchedule schedule_ ABSL_GUARDED_BY(schedule_mutex_);

  mutable Mutex stop_mutex_;
  CondVar stop_changed_;
  bool stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;

  std::vector<std::thread> issuers_;
  std::vector<std::thread> checkers_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_ENGINE_H_

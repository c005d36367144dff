#include "engram_client/ctl/load_engine.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "engram_client/rpc/timer_queue.h"

namespace engram::ctl {
namespace {

// How soon Run sees that a thread has ended the run.
constexpr absl::Duration kTick = absl::Milliseconds(20);

LoadSchedule::Options ScheduleOf(const LoadEngine::Options& options) {
  LoadSchedule::Options schedule = options.schedule;
  schedule.end = options.warmup + options.duration;
  return schedule;
}

// So long that one of the seconds begins with the end of the warm-up.
absl::Duration FirstSecond(absl::Duration warmup) {
  const absl::Duration part = warmup - absl::Floor(warmup, absl::Seconds(1));
  return part > absl::ZeroDuration() ? part : absl::Seconds(1);
}

// As it comes, the kernel wakes a thread up to 50 us late, which a small
// gather's latency would show.
void WakeOnTime() { prctl(PR_SET_TIMERSLACK, 1UL); }

}  // namespace

LoadEngine::LoadEngine(const Options& options, LoadTarget* target)
    : options_(options),
      target_(*target),
      recorder_(options.schedule.sizes.size(),
                -absl::ToDoubleSeconds(options.warmup)),
      slots_(SlotCount(options)),
      calls_(SlotCount(options)),
      schedule_(ScheduleOf(options)) {
  ENGRAM_CHECK(options.max_in_flight > 0 && options.threads > 0 &&
               options.check_threads > 0);
}

LoadEngine::~LoadEngine() {
  Stop();
  for (std::thread& thread : issuers_) {
    if (thread.joinable()) thread.join();
  }
  slots_.WaitUntilAllFree();
  slots_.Close();
  for (std::thread& thread : checkers_) thread.join();
}

LoadResults LoadEngine::Run(const Hooks& hooks) {
  start_ = SteadyNow();
  next_second_ = start_ + FirstSecond(options_.warmup);
  issuing_ = options_.threads;
  for (size_t i = 0; i < options_.check_threads; ++i) {
    checkers_.emplace_back([this] { CheckAnswers(); });
  }
  for (size_t i = 0; i < options_.threads; ++i) {
    issuers_.emplace_back([this] { Issue(); });
  }
  WatchIssuing(hooks);
  const double whole = absl::ToDoubleSeconds(options_.duration);
  const double measured =
      stopped() ? std::clamp(SecondsSinceWarmup(), 0.0, whole) : whole;
  for (std::thread& thread : issuers_) thread.join();
  AwaitLastCalls(hooks);
  if (recorder_.in_second()) CutSecond(hooks);

  LoadResults results = recorder_.results();
  results.measured_seconds = measured;
  results.interrupted = interrupted_;
  results.unfinished = in_flight_;
  return results;
}

void LoadEngine::WatchIssuing(const Hooks& hooks) {
  while (issuing_ > 0 && !stopped()) {
    Tick(hooks);
    if (interrupted_) Stop();
  }
}

void LoadEngine::AwaitLastCalls(const Hooks& hooks) {
  absl::Time until = SteadyNow() + options_.deadline + options_.grace;
  bool hurried = false;
  while (in_flight_ > 0 && !broken_) {
    if (interrupted_ && !hurried) {
      hurried = true;
      until = std::min(until, SteadyNow() + options_.grace);
    }
    if (SteadyNow() >= until) return;
    Tick(hooks);
  }
}

void LoadEngine::Tick(const Hooks& hooks) {
  const absl::Duration left =
      std::max(next_second_ - SteadyNow(), absl::ZeroDuration());
  if (hooks.wait(std::min(left, kTick))) interrupted_ = true;
  if (SteadyNow() >= next_second_) CutSecond(hooks);
}

void LoadEngine::CutSecond(const Hooks& hooks) {
  const size_t unchecked = unchecked_;
  const size_t in_flight = in_flight_;
  hooks.on_second(recorder_.Cut(SecondsSinceWarmup(),
                                in_flight - std::min(in_flight, unchecked)));
  while (next_second_ <= SteadyNow()) next_second_ += absl::Seconds(1);
}

double LoadEngine::SecondsSinceWarmup() const {
  return absl::ToDoubleSeconds(SteadyNow() - start_ - options_.warmup);
}

void LoadEngine::Issue() {
  WakeOnTime();
  size_t slot = slots_.Take();
  while (const std::optional<LoadCall> call = NextCall()) {
    const absl::Time due = start_ + call->when;
    if (SteadyNow() >= due && in_flight_ >= options_.max_in_flight) {
      CountNotSent(*call);  // without the work of preparing it
      continue;
    }
    target_.Prepare(slot, *call);
    if (!SleepUntil(due)) break;
    if (TrySend(slot, *call, due)) slot = slots_.Take();
  }
  slots_.Free(slot);
  --issuing_;
}

std::optional<LoadCall> LoadEngine::NextCall() {
  if (stopped()) return std::nullopt;
  MutexLock lock(&schedule_mutex_);
  return schedule_.Next();
}

bool LoadEngine::SleepUntil(absl::Time due) {
  MutexLock lock(&stop_mutex_);
  while (!stopped_) {
    const absl::Duration left = due - SteadyNow();
    if (left <= absl::ZeroDuration()) return true;
    stop_changed_.WaitFor(&stop_mutex_, left);
  }
  return false;
}

LoadRecorder::Which LoadEngine::WhichOf(const LoadCall& call) const {
  return {.size_index = call.size_index,
          .measured = call.when >= options_.warmup};
}

void LoadEngine::CountNotSent(const LoadCall& call) {
  recorder_.NotSent(WhichOf(call), 2 * unchecked_ >= options_.max_in_flight);
}

bool LoadEngine::TrySend(size_t slot, const LoadCall& call, absl::Time due) {
  if (in_flight_.fetch_add(1) >= options_.max_in_flight) {
    --in_flight_;
    CountNotSent(call);
    return false;
  }
  const absl::Time now = SteadyNow();
  Call& state = calls_[slot];
  state.which = WhichOf(call);
  recorder_.Sent(state.which, now - due);
  state.due = due;
  state.deadline = now + options_.deadline;
  state.awaited = 2;
  target_.Start(slot, absl::Now() + options_.deadline,
                [this, slot](const absl::Status& status) {
                  calls_[slot].ended = SteadyNow();
                  calls_[slot].status = status;
                  Came(slot);
                });
  Came(slot);
  return true;
}

void LoadEngine::Came(size_t slot) {
  if (calls_[slot].awaited.fetch_sub(1) > 1) return;
  ++unchecked_;
  slots_.QueueCheck(slot);
}

void LoadEngine::CheckAnswers() {
  while (const std::optional<size_t> slot = slots_.NextToCheck()) {
    Finish(*slot);
  }
}

void LoadEngine::Finish(size_t slot) {
  const Call& call = calls_[slot];
  const LoadAnswer answer = target_.Finish(slot, call.status);
  recorder_.Ended(
      call.which,
      {.latency = call.ended - call.due, .overrun = call.ended - call.deadline},
      call.status, answer);
  if (answer.mismatch.has_value() || !answer.cannot_check.ok()) {
    broken_ = true;
    Stop();
  }
  // Free before it no longer counts: whoever sends next finds a slot.
  slots_.Free(slot);
  --unchecked_;
  --in_flight_;
}

void LoadEngine::Stop() {
  MutexLock lock(&stop_mutex_);
  stopped_ = true;
  stop_changed_.NotifyAll();
}

bool LoadEngine::stopped() const {
  MutexLock lock(&stop_mutex_);
  return stopped_;
}

}  // namespace engram::ctl

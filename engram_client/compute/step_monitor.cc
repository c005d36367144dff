#include "engram_client/compute/step_monitor.h"

#include "engram_client/rpc/timer_queue.h"

namespace engram {
namespace {

// A hedge of a step costs megabytes and a worker's time, so what is only slow
// is given more of it than a gather gets. Large steps are few a second: hence
// the long memory.
CallTimes::Options TimesOptions(absl::Duration first_hedge_delay) {
  return {.slow_percentile = 0.95,
          .slow_factor = 3,
          .min_calls = 20,
          .first_hedge_delay = first_hedge_delay,
          .shortest_hedge_delay = absl::Milliseconds(10),
          .period = absl::Seconds(30)};
}

}  // namespace

StepMonitor::StepMonitor(absl::Duration first_hedge_delay)
    : apply_times_(TimesOptions(first_hedge_delay)),
      layer_times_(TimesOptions(first_hedge_delay)),
      budget_({.share = 0.05, .burst = 100}) {}

void StepMonitor::StepStarted() {
  Increment(steps_);
  budget_.OnFirstCall();
}

void StepMonitor::Took(const StepWork& work, absl::Duration time) {
  TimesOf(work.kind).Record(work.tokens, time, SteadyNow());
}

absl::Duration StepMonitor::HedgeDelay(const StepWork& work) {
  return TimesOf(work.kind).HedgeDelay(work.tokens, SteadyNow());
}

bool StepMonitor::MayRetryAtOnce() {
  Increment(retries_);
  if (budget_.TrySpend(1)) return true;
  Increment(held_retries_);
  return false;
}

bool StepMonitor::MayHedge(bool suspect) {
  const bool may = suspect ? budget_.TrySpend(1) : budget_.TrySpendUpperHalf(1);
  Increment(may ? hedges_ : refused_hedges_);
  return may;
}

ComputeClient::Stats StepMonitor::stats() const {
  return {.steps = steps_.load(std::memory_order_relaxed),
          .retries = retries_.load(std::memory_order_relaxed),
          .held_retries = held_retries_.load(std::memory_order_relaxed),
          .hedges = hedges_.load(std::memory_order_relaxed),
          .hedges_won = hedges_won_.load(std::memory_order_relaxed),
          .refused_hedges = refused_hedges_.load(std::memory_order_relaxed),
          .ejections = ejections_.load(std::memory_order_relaxed)};
}

}  // namespace engram

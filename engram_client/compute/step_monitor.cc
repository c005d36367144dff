#include "engram_client/compute/step_monitor.h"

#include <utility>

#include "core/rpc/metric_families.h"
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

StepMonitor::StepMonitor(absl::Duration first_hedge_delay,
                         std::shared_ptr<prometheus::Registry> registry)
    : registry_(OrOwnRegistry(std::move(registry))),
      metrics_(*registry_),
      apply_times_(TimesOptions(first_hedge_delay)),
      layer_times_(TimesOptions(first_hedge_delay)),
      budget_({.share = 0.05, .burst = 100}) {
  metrics_.budget_limit.Set(budget_.burst());
  metrics_.budget_tokens.Set(budget_.tokens());
}

void StepMonitor::StepStarted() {
  metrics_.steps.Increment();
  budget_.OnFirstCall();
  metrics_.budget_tokens.Set(budget_.tokens());
}

void StepMonitor::Took(const StepWork& work, absl::Duration time) {
  TimesOf(work.kind).Record(work.tokens, time, SteadyNow());
  (work.kind == StepWork::Kind::kApply ? metrics_.apply_seconds
                                       : metrics_.layer_seconds)
      .Observe(absl::ToDoubleSeconds(time));
}

absl::Duration StepMonitor::HedgeDelay(const StepWork& work) {
  return TimesOf(work.kind).HedgeDelay(work.tokens, SteadyNow());
}

bool StepMonitor::MayRetryAtOnce() {
  metrics_.retries.Increment();
  const bool may = budget_.TrySpend(1);
  if (!may) metrics_.held_retries.Increment();
  metrics_.budget_tokens.Set(budget_.tokens());
  return may;
}

bool StepMonitor::MayHedge(bool suspect) {
  const bool may = suspect ? budget_.TrySpend(1) : budget_.TrySpendUpperHalf(1);
  (may ? metrics_.hedges : metrics_.refused_hedges).Increment();
  metrics_.budget_tokens.Set(budget_.tokens());
  return may;
}

ComputeClient::Stats StepMonitor::stats() const {
  return {.steps = CountOf(metrics_.steps),
          .retries = CountOf(metrics_.retries),
          .held_retries = CountOf(metrics_.held_retries),
          .hedges = CountOf(metrics_.hedges),
          .hedges_won = CountOf(metrics_.hedges_won),
          .refused_hedges = CountOf(metrics_.refused_hedges),
          .ejections = CountOf(metrics_.ejections)};
}

}  // namespace engram

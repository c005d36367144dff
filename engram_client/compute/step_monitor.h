#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MONITOR_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MONITOR_H_

#include <prometheus/registry.h>

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "engram_client/compute/step_metrics.h"
#include "engram_client/compute_client.h"
#include "engram_client/routing/call_times.h"
#include "engram_client/rpc/retry_budget.h"

namespace engram {

// What a worker is asked for and timed by.
struct StepWork {
  enum class Kind { kApply, kLayer };
  Kind kind = Kind::kApply;
  uint64_t tokens = 0;  // of all layers that are asked for together
};

// What all steps of a client share: how long they take, how many may be sent
// again, and what became of them.
//
// Thread safety: all methods may be called concurrently.
class StepMonitor {
 public:
  // `registry`: where the metrics go; null: one of its own.
  explicit StepMonitor(
      absl::Duration first_hedge_delay,
      std::shared_ptr<prometheus::Registry> registry = nullptr);

  void StepStarted();
  // `time`: from the work's last sending to the whole answer.
  void Took(const StepWork& work, absl::Duration time);
  // How long the work may take before it is sent to another worker too.
  absl::Duration HedgeDelay(const StepWork& work);

  // Counts a retry. False: it has to wait first, for the budget's sake.
  bool MayRetryAtOnce();
  // Counts a hedge, or that there was no budget for it. `suspect`: its worker
  // was silent before. Chance leaves half of the budget to those.
  bool MayHedge(bool suspect);
  void HedgeWon() { metrics_.hedges_won.Increment(); }
  void WorkerEjected() { metrics_.ejections.Increment(); }

  StepMetrics& metrics() { return metrics_; }
  ComputeClient::Stats stats() const;

 private:
  CallTimes& TimesOf(StepWork::Kind kind) {
    return kind == StepWork::Kind::kApply ? apply_times_ : layer_times_;
  }

  const std::shared_ptr<prometheus::Registry> registry_;
  StepMetrics metrics_;
  CallTimes apply_times_;
  CallTimes layer_times_;
  RetryBudget budget_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MONITOR_H_

#include "engram_client/compute/step_metrics.h"

#include "core/rpc/metric_families.h"

namespace engram {
namespace {

// 0.25 ms .. 16 s, each bucket twice the one before.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  return DoublingBuckets(250e-6, 20);
}

}  // namespace

StepMetrics::StepMetrics(prometheus::Registry& registry)
    : StepMetrics(registry,
                  prometheus::BuildHistogram()
                      .Name("engram_compute_client_answer_seconds")
                      .Help("Time to a worker's whole answer, from the last "
                            "byte that it was sent, by what was asked.")
                      .Register(registry)) {}

StepMetrics::StepMetrics(prometheus::Registry& registry,
                         prometheus::Family<prometheus::Histogram>& answers)
    : steps(AddCounter(registry, "engram_compute_client_steps_total",
                       "Steps that were begun.")),
      retries(AddCounter(registry, "engram_compute_client_retries_total",
                         "Steps sent to a worker after another one failed.")),
      held_retries(
          AddCounter(registry, "engram_compute_client_held_retries_total",
                     "Of these, those that waited, the budget being used up.")),
      hedges(AddCounter(registry, "engram_compute_client_hedges_total",
                        "Steps sent to a second worker after silence.")),
      hedges_won(AddCounter(registry, "engram_compute_client_hedges_won_total",
                            "Of these, steps that went on there.")),
      refused_hedges(AddCounter(registry,
                                "engram_compute_client_hedges_refused_total",
                                "Hedges left out, the budget being used up.")),
      ejections(AddCounter(registry, "engram_compute_client_ejections_total",
                           "Times that a worker was left for silence.")),
      budget_tokens(AddGauge(registry, "engram_compute_client_budget_tokens",
                             "Retries and hedges that may be sent at once.")),
      budget_limit(AddGauge(registry,
                            "engram_compute_client_budget_tokens_limit",
                            "Limit of engram_compute_client_budget_tokens.")),
      workers(AddGauge(registry, "engram_compute_client_workers",
                       "Workers that are known, connected or not.")),
      workers_ready(AddGauge(registry, "engram_compute_client_workers_ready",
                             "Of these, workers that take steps.")),
      apply_seconds(answers.Add({{"kind", "apply"}}, SecondsBuckets())),
      layer_seconds(answers.Add({{"kind", "layer"}}, SecondsBuckets())) {}

}  // namespace engram

#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_METRICS_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace engram {

// The engram_compute_client_* metrics of one ComputeClient, all there (as 0)
// from the start. Every bound has its limit beside its gauge.
//
// Thread safety: all members may be used concurrently.
struct StepMetrics {
  // `registry` must outlive this.
  explicit StepMetrics(prometheus::Registry& registry);

  prometheus::Counter& steps;
  prometheus::Counter& retries;
  prometheus::Counter& held_retries;
  prometheus::Counter& hedges;
  prometheus::Counter& hedges_won;
  prometheus::Counter& refused_hedges;
  prometheus::Counter& ejections;
  prometheus::Gauge& budget_tokens;
  prometheus::Gauge& budget_limit;
  prometheus::Gauge& workers;
  prometheus::Gauge& workers_ready;
  prometheus::Histogram& apply_seconds;
  prometheus::Histogram& layer_seconds;

 private:
  StepMetrics(prometheus::Registry& registry,
              prometheus::Family<prometheus::Histogram>& answers);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_METRICS_H_

#ifndef ENGRAM_COMPUTE_WORKER_METRICS_H_
#define ENGRAM_COMPUTE_WORKER_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compute/block/engram_block.h"
#include "compute/worker/fair_share.h"
#include "core/base/ids.h"

namespace engram {

// Where a step's time goes.
enum class StepStage {
  kHash,       // token ids to row ids, one layer
  kFetch,      // start of a layer's fetch to its rows
  kFetchWait,  // streams that were there waited for their rows
  kQueue,      // rows and streams were there and waited for a thread
  kBlock,      // decode, project, gate of one run of tokens
  kStep,       // arrival of the step to its end
};
inline constexpr int kStepStageCount = 6;

// What a worker may have only so much of; see StepEngine::Options.
enum class WorkerBound {
  kSteps,
  kPrefetchedBytes,
  kStreamBytes,
  kForwardStreams,
  kQueuedRuns,
};
inline constexpr int kWorkerBoundCount = 5;

// What a worker counts, in one Prometheus registry. Every bound of the worker
// has its limit beside its gauge.
//
// Thread safety: all methods may be called concurrently.
class WorkerMetrics {
 public:
  // `registry` must outlive this.
  explicit WorkerMetrics(prometheus::Registry& registry);

  // Methods: "GetModel", "Apply", "Forward".
  void CallEnded(const char* method, absl::StatusCode code);
  void StepEnded(absl::StatusCode code);
  void StepTokens(uint64_t tokens, uint64_t live_tokens);
  void StageTook(StepStage stage, absl::Duration time);
  // A caller was not given what it asked for. REQUIRES: not kTaken.
  void Refused(WorkerBound bound, FairShare::Verdict verdict);
  // A step ended because the rows of this layer did not come within its time.
  void RowsLate(LayerId layer);
  void RowsFetched(uint64_t rows, uint64_t unique_rows, uint64_t bytes);

  // Current values, set by who owns the bound.
  prometheus::Gauge& steps_in_flight() { return *steps_in_flight_; }
  prometheus::Gauge& prefetched_bytes() { return *prefetched_bytes_; }
  prometheus::Gauge& stream_bytes() { return *stream_bytes_; }
  prometheus::Gauge& forward_streams() { return *forward_streams_; }
  // Those with steps in flight.
  prometheus::Gauge& callers() { return *callers_; }
  // Tasks that wait for the thread that hashes, and for those that compute.
  prometheus::Gauge& queued_hashes() { return *queued_hashes_; }
  prometheus::Gauge& queued_runs() { return *queued_runs_; }
  prometheus::Gauge& ready() { return *ready_; }
  // 1 while every partition has a server.
  prometheus::Gauge& tables_covered() { return *tables_covered_; }
  prometheus::Gauge& pinned_rows_bytes() { return *pinned_rows_bytes_; }
  prometheus::Counter& unpinned_rows() { return *unpinned_rows_; }
  // By one thread at a time.
  void SetBlockUse(const BlockUse& use);
  // Once, at start: "cpu" or "cuda:N", what the device is, how it projects.
  void SetDevice(const std::string& device, const std::string& name,
                 const std::string& projection);
  // Once, at start.
  void SetLimits(uint64_t max_steps, uint64_t max_prefetched_bytes,
                 uint64_t max_stream_bytes, uint64_t max_forward_streams);
  void SetQueueLimits(uint64_t max_hashes, uint64_t max_runs);

 private:
  // `limited`: the metric that never exceeds it.
  void SetLimit(const char* name, const char* limited, uint64_t limit);

  prometheus::Registry& registry_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Counter>& steps_;
  prometheus::Family<prometheus::Counter>& late_rows_;
  prometheus::Counter* refused_[kWorkerBoundCount][2];
  prometheus::Counter* tokens_;
  prometheus::Counter* live_tokens_;
  prometheus::Counter* rows_;
  prometheus::Counter* unique_rows_;
  prometheus::Counter* row_bytes_;
  prometheus::Histogram* stages_[kStepStageCount];
  prometheus::Gauge* steps_in_flight_;
  prometheus::Gauge* prefetched_bytes_;
  prometheus::Gauge* stream_bytes_;
  prometheus::Gauge* forward_streams_;
  prometheus::Gauge* callers_;
  prometheus::Gauge* queued_hashes_;
  prometheus::Gauge* queued_runs_;
  prometheus::Gauge* ready_;
  prometheus::Gauge* tables_covered_;
  prometheus::Gauge* pinned_rows_bytes_;
  prometheus::Gauge* pinned_rows_limit_bytes_;
  prometheus::Counter* unpinned_rows_;
  prometheus::Gauge* device_slots_;
  prometheus::Gauge* device_slots_limit_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_METRICS_H_

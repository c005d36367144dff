#include "compute/worker/metrics.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/rpc/metric_families.h"

namespace engram {
namespace {

constexpr std::array<const char*, kStepStageCount> kStageNames = {
    "hash", "fetch", "fetch_wait", "queue", "block", "step"};

constexpr std::array<const char*, kWorkerBoundCount> kBoundNames = {
    "steps", "prefetched_bytes", "stream_bytes", "forward_streams",
    "queued_runs"};
constexpr std::array<const char*, 2> kRefusals = {"full", "callers_share"};

// 10 us .. 80 s, each bucket twice the one before.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  return DoublingBuckets(1e-5, 100);
}

}  // namespace

WorkerMetrics::WorkerMetrics(prometheus::Registry& registry)
    : registry_(registry),
      calls_(prometheus::BuildCounter()
                 .Name("engram_compute_calls_total")
                 .Help("Finished gRPC calls by method and status code.")
                 .Register(registry)),
      steps_(prometheus::BuildCounter()
                 .Name("engram_compute_steps_total")
                 .Help("Finished steps by status code.")
                 .Register(registry)),
      late_rows_(
          prometheus::BuildCounter()
              .Name("engram_compute_late_rows_total")
              .Help("Steps that ended because the rows of a layer did not "
                    "come within the time that its caller gave it.")
              .Register(registry)),
      tokens_(&AddCounter(registry, "engram_compute_tokens_total",
                          "Tokens of the steps that were taken.")),
      live_tokens_(&AddCounter(registry, "engram_compute_live_tokens_total",
                               "Of those, tokens that are not masked out.")),
      rows_(&AddCounter(registry, "engram_compute_rows_total",
                        "Rows fetched for steps, duplicates counted.")),
      unique_rows_(&AddCounter(registry, "engram_compute_unique_rows_total",
                               "Rows fetched for steps, without duplicates.")),
      row_bytes_(&AddCounter(registry, "engram_compute_row_bytes_total",
                             "Bytes of packed rows that came over the wire.")),
      steps_in_flight_(&AddGauge(registry, "engram_compute_steps_in_flight",
                                 "Steps that hold memory of the worker.")),
      prefetched_bytes_(&AddGauge(registry, "engram_compute_prefetched_bytes",
                                  "Packed rows held or being fetched.")),
      stream_bytes_(&AddGauge(registry, "engram_compute_stream_bytes",
                              "Streams whose answer has not left.")),
      forward_streams_(&AddGauge(registry, "engram_compute_forward_streams",
                                 "Open Forward streams.")),
      callers_(&AddGauge(registry, "engram_compute_callers",
                         "Connections that have steps in flight.")),
      queued_hashes_(
          &AddGauge(registry, "engram_compute_queued_hashes",
                    "Steps that wait for the thread that hashes and ends.")),
      queued_runs_(&AddGauge(registry, "engram_compute_queued_runs",
                             "Runs of tokens that wait for a thread.")),
      ready_(&AddGauge(registry, "engram_compute_ready",
                       "1 while steps are taken.")),
      tables_covered_(&AddGauge(registry, "engram_compute_tables_covered",
                                "1 while every partition has a table server.")),
      pinned_rows_bytes_(&AddGauge(registry, "engram_compute_pinned_rows_bytes",
                                   "Pinned memory that holds packed rows.")),
      pinned_rows_limit_bytes_(
          &AddGauge(registry, "engram_compute_pinned_rows_limit_bytes",
                    "Limit of engram_compute_pinned_rows_bytes.")),
      unpinned_rows_(
          &AddCounter(registry, "engram_compute_unpinned_rows_total",
                      "Layers whose rows did not fit in the pinned memory.")),
      device_slots_(&AddGauge(registry, "engram_compute_device_slots_in_use",
                              "Tiles of tokens that are on the GPU.")),
      device_slots_limit_(
          &AddGauge(registry, "engram_compute_device_slots_limit",
                    "Limit of engram_compute_device_slots_in_use.")) {
  auto& family = prometheus::BuildHistogram()
                     .Name("engram_compute_stage_seconds")
                     .Help("Time of each stage of a step.")
                     .Register(registry);
  for (int stage = 0; stage < kStepStageCount; ++stage) {
    stages_[stage] =
        &family.Add({{"stage", kStageNames[stage]}}, SecondsBuckets());
  }
  auto& refused = prometheus::BuildCounter()
                      .Name("engram_compute_refused_total")
                      .Help(
                          "Refusals by bound: full, or what is left is kept "
                          "for other callers.")
                      .Register(registry);
  for (int bound = 0; bound < kWorkerBoundCount; ++bound) {
    for (size_t why = 0; why < kRefusals.size(); ++why) {
      refused_[bound][why] = &refused.Add(
          {{"bound", kBoundNames[bound]}, {"reason", kRefusals[why]}});
    }
  }
}

void WorkerMetrics::SetLimits(uint64_t max_steps, uint64_t max_prefetched_bytes,
                              uint64_t max_stream_bytes,
                              uint64_t max_forward_streams) {
  SetLimit("engram_compute_steps_in_flight_limit",
           "engram_compute_steps_in_flight", max_steps);
  SetLimit("engram_compute_prefetched_limit_bytes",
           "engram_compute_prefetched_bytes", max_prefetched_bytes);
  SetLimit("engram_compute_stream_limit_bytes", "engram_compute_stream_bytes",
           max_stream_bytes);
  SetLimit("engram_compute_forward_streams_limit",
           "engram_compute_forward_streams", max_forward_streams);
}

void WorkerMetrics::SetQueueLimits(uint64_t max_hashes, uint64_t max_runs) {
  SetLimit("engram_compute_queued_hashes_limit", "engram_compute_queued_hashes",
           max_hashes);
  SetLimit("engram_compute_queued_runs_limit", "engram_compute_queued_runs",
           max_runs);
}

void WorkerMetrics::SetLimit(const char* name, const char* limited,
                             uint64_t limit) {
  AddGauge(registry_, name, absl::StrCat("Limit of ", limited, "."))
      .Set(static_cast<double>(limit));
}

void WorkerMetrics::SetBlockUse(const BlockUse& use) {
  pinned_rows_bytes_->Set(static_cast<double>(use.rows.used_bytes));
  pinned_rows_limit_bytes_->Set(static_cast<double>(use.rows.limit_bytes));
  unpinned_rows_->Increment(static_cast<double>(use.rows.fallbacks) -
                            unpinned_rows_->Value());
  device_slots_->Set(static_cast<double>(use.slots_in_use));
  device_slots_limit_->Set(static_cast<double>(use.slots_limit));
}

void WorkerMetrics::SetDevice(const std::string& device,
                              const std::string& name,
                              const std::string& projection) {
  prometheus::BuildGauge()
      .Name("engram_compute_device_info")
      .Help("What steps are computed on; always 1.")
      .Register(registry_)
      .Add({{"device", device}, {"name", name}, {"projection", projection}})
      .Set(1);
}

void WorkerMetrics::CallEnded(const char* method, absl::StatusCode code) {
  calls_.Add({{"method", method}, {"code", absl::StatusCodeToString(code)}})
      .Increment();
}

void WorkerMetrics::StepEnded(absl::StatusCode code) {
  steps_.Add({{"code", absl::StatusCodeToString(code)}}).Increment();
}

void WorkerMetrics::StepTokens(uint64_t tokens, uint64_t live_tokens) {
  tokens_->Increment(static_cast<double>(tokens));
  live_tokens_->Increment(static_cast<double>(live_tokens));
}

void WorkerMetrics::StageTook(StepStage stage, absl::Duration time) {
  stages_[static_cast<int>(stage)]->Observe(absl::ToDoubleSeconds(time));
}

void WorkerMetrics::Refused(WorkerBound bound, FairShare::Verdict verdict) {
  ENGRAM_CHECK(verdict != FairShare::Verdict::kTaken);
  const int why = verdict == FairShare::Verdict::kFull ? 0 : 1;
  refused_[static_cast<int>(bound)][why]->Increment();
}

void WorkerMetrics::RowsLate(LayerId layer) {
  late_rows_.Add({{"layer", absl::StrCat(ToInt(layer))}}).Increment();
}

void WorkerMetrics::RowsFetched(uint64_t rows, uint64_t unique_rows,
                                uint64_t bytes) {
  rows_->Increment(static_cast<double>(rows));
  unique_rows_->Increment(static_cast<double>(unique_rows));
  row_bytes_->Increment(static_cast<double>(bytes));
}

}  // namespace engram

#include "compute/worker/metrics.h"

#include <array>
#include <string>

#include "core/rpc/metric_families.h"

namespace engram {
namespace {

constexpr std::array<const char*, kStepStageCount> kStageNames = {
    "hash", "fetch", "fetch_wait", "queue", "block", "step"};

// 10 us .. 80 s, each bucket twice the one before.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 1e-5; bound < 100; bound *= 2) bounds.push_back(bound);
  return bounds;
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
      ready_(&AddGauge(registry, "engram_compute_ready",
                       "1 while steps are taken.")),
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
}

void WorkerMetrics::SetLimits(uint64_t max_steps, uint64_t max_prefetched_bytes,
                              uint64_t max_stream_bytes,
                              uint64_t max_forward_streams) {
  AddGauge(registry_, "engram_compute_steps_in_flight_limit",
           "Limit of engram_compute_steps_in_flight.")
      .Set(static_cast<double>(max_steps));
  AddGauge(registry_, "engram_compute_prefetched_limit_bytes",
           "Limit of engram_compute_prefetched_bytes.")
      .Set(static_cast<double>(max_prefetched_bytes));
  AddGauge(registry_, "engram_compute_stream_limit_bytes",
           "Limit of engram_compute_stream_bytes.")
      .Set(static_cast<double>(max_stream_bytes));
  AddGauge(registry_, "engram_compute_forward_streams_limit",
           "Limit of engram_compute_forward_streams.")
      .Set(static_cast<double>(max_forward_streams));
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

void WorkerMetrics::RowsFetched(uint64_t rows, uint64_t unique_rows,
                                uint64_t bytes) {
  rows_->Increment(static_cast<double>(rows));
  unique_rows_->Increment(static_cast<double>(unique_rows));
  row_bytes_->Increment(static_cast<double>(bytes));
}

}  // namespace engram

#include "table_server/service/table_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/metric_families.h"

namespace engram {
namespace {

constexpr std::array<const char*, kTableMethodCount> kMethodNames = {
    "GetTable",       "Gather",   "GatherStream", "WatchPartitions",
    "FetchPartition", "Exchange", "Leave",        "RecordHeat"};

std::vector<prometheus::Gauge*> AddLayerGauges(prometheus::Registry& registry,
                                               absl::Span<const LayerId> layers,
                                               const std::string& name,
                                               const std::string& help) {
  auto& family =
      prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  std::vector<prometheus::Gauge*> gauges;
  for (const LayerId layer : layers) {
    gauges.push_back(&family.Add({{"layer", absl::StrCat(ToInt(layer))}}));
  }
  return gauges;
}

// 50 us .. 3.3 s, factors of 2.
prometheus::Histogram::BucketBoundaries LatencyBuckets() {
  return DoublingBuckets(50e-6, 4);
}

}  // namespace

TableMetrics::TableMetrics(std::shared_ptr<prometheus::Registry> registry,
                           absl::Span<const LayerId> layers)
    : registry_(std::move(registry)) {
  AddCallMetrics(*registry_);
  AddGauges(*registry_, layers);
}

void TableMetrics::AddCallMetrics(prometheus::Registry& registry) {
  auto& calls = prometheus::BuildCounter()
                    .Name("engram_table_calls_total")
                    .Help(
                        "Calls that ended, by method and status code. Each "
                        "gather of a stream counts as one.")
                    .Register(registry);
  auto& seconds = prometheus::BuildHistogram()
                      .Name("engram_table_gather_seconds")
                      .Help(
                          "Time from a gather's arrival to its last byte "
                          "handed to the transport.")
                      .Register(registry);
  for (size_t method = 0; method < kTableMethodCount; ++method) {
    for (size_t code = 0; code < kCodeCount; ++code) {
      calls_[method][code] = &calls.Add(
          {{"method", kMethodNames[method]},
           {"code",
            absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
  }
  gather_seconds_.fill(nullptr);
  for (const TableMethod method :
       {TableMethod::kGather, TableMethod::kGatherStream}) {
    const auto index = static_cast<size_t>(method);
    gather_seconds_[index] =
        &seconds.Add({{"method", kMethodNames[index]}}, LatencyBuckets());
  }
  rows_ = &AddCounter(registry, "engram_table_rows_total",
                      "Rows of gathers that succeeded.");
  row_bytes_ = &AddCounter(registry, "engram_table_row_bytes_total",
                           "Bytes of packed rows of gathers that succeeded.");
  fetched_bytes_ =
      &AddCounter(registry, "engram_table_fetched_bytes_total",
                  "Bytes of packed rows that other servers copied from here.");
}

void TableMetrics::AddGauges(prometheus::Registry& registry,
                             absl::Span<const LayerId> layers) {
  const auto add = [&](const char* name, const char* help) {
    return &AddGauge(registry, absl::StrCat("engram_table_", name), help);
  };
  const auto add_layers = [&](const char* name, const char* help) {
    return AddLayerGauges(registry, layers, absl::StrCat("engram_table_", name),
                          help);
  };
  load_bytes_ = add("load_bytes", "Bytes of packed rows this server loads.");
  loaded_bytes_ = add("loaded_bytes", "Bytes loaded and verified.");
  gauges_.gathers_in_flight = add("gathers_in_flight", "Admitted gathers.");
  gauges_.gathers_limit = add("gathers_in_flight_limit",
                              "Gathers admitted at once; more are OVERLOADED.");
  gauges_.bytes_in_flight =
      add("in_flight_bytes", "Bytes that admitted gathers hold.");
  gauges_.bytes_limit = add("in_flight_limit_bytes",
                            "Bytes that admitted gathers may hold at once.");
  gauges_.gathers_waiting =
      add("gathers_waiting",
          "Admitted gathers that wait for rows that are not in memory.");
  gauges_.large_gathers_in_flight =
      add("large_gathers_in_flight", "Admitted gathers above decode size.");
  gauges_.large_gathers_limit =
      add("large_gathers_in_flight_limit",
          "Their limit; what is left is for gathers of decode size.");
  gauges_.large_bytes_in_flight =
      add("large_in_flight_bytes", "Bytes that they hold.");
  gauges_.large_bytes_limit =
      add("large_in_flight_limit_bytes", "Bytes that they may hold at once.");
  gauges_.reply_buffer_bytes =
      add("reply_buffer_bytes", "Memory kept for pieces of replies.");
  gauges_.reply_buffer_limit =
      add("reply_buffer_limit_bytes",
          "Its limit; what replies need above it is of the heap.");
  gauges_.streams = add("streams", "Open GatherStream calls.");
  gauges_.streams_limit = add("streams_limit", "Their limit.");
  gauges_.watchers = add("watchers", "Open WatchPartitions calls.");
  gauges_.watchers_limit = add("watchers_limit", "Their limit.");
  gauges_.fetches = add("fetches", "Open FetchPartition calls.");
  gauges_.fetches_limit = add("fetches_limit", "Their limit.");
  gauges_.heat_streams = add("heat_streams", "Open RecordHeat calls.");
  gauges_.heat_streams_limit = add("heat_streams_limit", "Their limit.");
  gauges_.heat_recording =
      add("heat_recording", "1 while a RecordHeat call counts rows.");
  gauges_.heat_sampled_rows =
      add("heat_sampled_rows", "Rows that it counts one by one.");
  gauges_.heat_sampled_rows_limit = add(
      "heat_sampled_rows_limit", "Their limit; 0 while nothing is counted.");
  gauges_.ready =
      add("ready", "1 when every owned partition is loaded and verified.");
  gauges_.memory_bytes = add("memory_bytes", "Memory reserved for rows.");
  gauges_.huge_page_bytes = add("huge_page_bytes",
                                "Memory of rows that lies in huge pages, as of "
                                "the end of loading.");
  gauges_.partitions_owned =
      add_layers("partitions_owned", "Partitions this server is to hold.");
  gauges_.partitions_ready =
      add_layers("partitions_ready", "Partitions held and verified.");
  gauges_.nan_codes =
      add_layers("nan_codes", "NaN codes among the rows loaded.");
  gauges_.nan_scales =
      add_layers("nan_scales", "NaN scales among the rows loaded.");
}

void TableMetrics::CallEnded(TableMethod method, absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  const auto unknown = static_cast<size_t>(absl::StatusCode::kUnknown);
  calls_[static_cast<size_t>(method)][index < kCodeCount ? index : unknown]
      ->Increment();
}

void TableMetrics::GatherEnded(TableMethod method, absl::StatusCode code,
                               absl::Duration took, uint64_t rows,
                               uint64_t bytes) {
  CallEnded(method, code);
  gather_seconds_[static_cast<size_t>(method)]->Observe(
      absl::ToDoubleSeconds(took));
  if (code != absl::StatusCode::kOk) return;
  rows_->Increment(static_cast<double>(rows));
  row_bytes_->Increment(static_cast<double>(bytes));
}

void TableMetrics::Fetched(uint64_t bytes) {
  fetched_bytes_->Increment(static_cast<double>(bytes));
}

void TableMetrics::LoadProgress(uint64_t loaded_bytes, uint64_t total_bytes) {
  loaded_bytes_->Set(static_cast<double>(loaded_bytes));
  load_bytes_->Set(static_cast<double>(total_bytes));
}

}  // namespace engram

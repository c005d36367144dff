#ifndef ENGRAM_TABLE_SERVER_SERVICE_TABLE_METRICS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_TABLE_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

enum class TableMethod {
  kGetTable,
  kGather,
  kGatherStream,  // one gather of a stream
  kWatchPartitions,
  kFetchPartition,
  kExchange,
  kLeave,
  kRecordHeat,
};
inline constexpr size_t kTableMethodCount = 8;

// The engram_table_* metrics, all of them there (as 0) from the start.
// Thread safety: all methods may be called concurrently.
class TableMetrics {
 public:
  TableMetrics(std::shared_ptr<prometheus::Registry> registry,
               absl::Span<const LayerId> layers);

  void CallEnded(TableMethod method, absl::StatusCode code);
  void GatherEnded(TableMethod method, absl::StatusCode code,
                   absl::Duration took, uint64_t rows, uint64_t bytes);
  void Fetched(uint64_t bytes);
  void LoadProgress(uint64_t loaded_bytes, uint64_t total_bytes);

  // Gauges that are set from outside, by the snapshot before each scrape.
  struct Gauges {
    prometheus::Gauge* gathers_in_flight;
    prometheus::Gauge* gathers_limit;
    prometheus::Gauge* bytes_in_flight;
    prometheus::Gauge* bytes_limit;
    prometheus::Gauge* gathers_waiting;
    prometheus::Gauge* large_gathers_in_flight;
    prometheus::Gauge* large_gathers_limit;
    prometheus::Gauge* large_bytes_in_flight;
    prometheus::Gauge* large_bytes_limit;
    prometheus::Gauge* reply_buffer_bytes;
    prometheus::Gauge* reply_buffer_limit;
    prometheus::Gauge* streams;
    prometheus::Gauge* streams_limit;
    prometheus::Gauge* watchers;
    prometheus::Gauge* watchers_limit;
    prometheus::Gauge* fetches;
    prometheus::Gauge* fetches_limit;
    prometheus::Gauge* heat_streams;
    prometheus::Gauge* heat_streams_limit;
    prometheus::Gauge* heat_recording;
    prometheus::Gauge* heat_sampled_rows;
    prometheus::Gauge* heat_sampled_rows_limit;
    prometheus::Gauge* ready;
    prometheus::Gauge* memory_bytes;
    prometheus::Gauge* huge_page_bytes;
    std::vector<prometheus::Gauge*> partitions_owned;  // [layer]
    std::vector<prometheus::Gauge*> partitions_ready;  // [layer]
    std::vector<prometheus::Gauge*> nan_codes;         // [layer]
    std::vector<prometheus::Gauge*> nan_scales;        // [layer]
  };
  const Gauges& gauges() const { return gauges_; }

 private:
  void AddCallMetrics(prometheus::Registry& registry);
  void AddGauges(prometheus::Registry& registry,
                 absl::Span<const LayerId> layers);

  static constexpr size_t kCodeCount = 17;  // OK .. UNAUTHENTICATED

  std::shared_ptr<prometheus::Registry> registry_;  // owns what follows
  std::array<std::array<prometheus::Counter*, kCodeCount>, kTableMethodCount>
      calls_;
  std::array<prometheus::Histogram*, kTableMethodCount> gather_seconds_;
  prometheus::Counter* rows_;
  prometheus::Counter* row_bytes_;
  prometheus::Counter* fetched_bytes_;
  prometheus::Gauge* load_bytes_;
  prometheus::Gauge* loaded_bytes_;
  Gauges gauges_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_TABLE_METRICS_H_

#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_METRICS_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_METRICS_H_

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "table_server/store/store_stats.h"

namespace engram {

// The engram_table_store_* metrics, all there (as 0) from the start.
// Thread safety: all methods may be called concurrently.
class StoreMetrics {
 public:
  explicit StoreMetrics(std::shared_ptr<prometheus::Registry> registry);

  void Set(const StoreStats& stats);

 private:
  const std::shared_ptr<prometheus::Registry> registry_;  // owns what follows
  std::vector<std::pair<uint64_t StoreStats::*, prometheus::Gauge*>> gauges_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_METRICS_H_

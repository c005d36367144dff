#ifndef ENGRAM_TABLE_SERVER_LOADING_STORAGE_METRICS_H_
#define ENGRAM_TABLE_SERVER_LOADING_STORAGE_METRICS_H_

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <memory>
#include <vector>

#include "table_server/loading/row_storage.h"
#include "table_server/store/store_metrics.h"

namespace engram {

// What is told of the tiers of a server with a local store, all of it there (as
// 0) from the start.
// Thread safety: all methods may be called concurrently.
class StorageMetrics {
 public:
  explicit StorageMetrics(std::shared_ptr<prometheus::Registry> registry);

  void Update(const RowStorage::Stats& stats);

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  StoreMetrics local_;
  std::vector<prometheus::Gauge*> gauges_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_STORAGE_METRICS_H_

#ifndef ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_
#define ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "core/model/manifest.h"
#include "engram/v1/table.pb.h"
#include "table_server/gather/gatherer.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/admission.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_limits.h"
#include "table_server/service/table_metrics.h"

namespace engram {

// What the calls of one service work with. Outlives every call.
struct ServiceContext {
  const std::string server_name;
  const uint64_t instance_id;
  const ServiceLimits limits;
  const Clock& clock;
  const Manifest& manifest;
  PartitionSet& partitions;
  Gatherer gatherer;
  Admission admission;
  TableMetrics& metrics;
  LiveSet streams;
  LiveSet watchers;
  std::atomic<bool> accepting{true};  // false: DRAINING
  // Last, so that it is joined first.
  ThreadPool pool;

  absl::Status DrainingError() const;
};

// The row ids of a request, which they stay part of.
std::vector<LayerRowIds> RowIdsOf(const v1::GatherRequest& request);

// Rows of all layers of a request.
uint64_t RowCountOf(const v1::GatherRequest& request);

// CRC32C of a gather whose rows are still to be added.
class GatherCrc;
GatherCrc StartCrc(const std::string& version,
                   const std::vector<LayerRowIds>& layers);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_

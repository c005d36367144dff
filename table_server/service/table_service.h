#ifndef ENGRAM_TABLE_SERVER_SERVICE_TABLE_SERVICE_H_
#define ENGRAM_TABLE_SERVER_SERVICE_TABLE_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/model/manifest.h"
#include "core/rpc/queue_service.h"
#include "table_server/heat/heat_recorder.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/call_source.h"
#include "table_server/service/cluster_calls.h"
#include "table_server/service/service_context.h"
#include "table_server/service/service_limits.h"
#include "table_server/service/sweeper.h"
#include "table_server/service/table_metrics.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// engram.v1.TableService over one table version.
//
// Thread safety: all methods may be called concurrently. Destroy it after the
// gRPC server that it is registered with.
class TableService final : public TableRpc, public QueueService {
 public:
  struct Options {
    std::string server_name;
    uint64_t instance_id = 0;
    ServiceLimits limits;
    // Threads that gather rows; 0: those of the queues do, which is best where
    // no row has to be waited for.
    size_t worker_threads = 0;
    // Answers Exchange and Leave; must outlive the service. Null: the server is
    // in no cluster. Then Exchange says what it is and holds, and Leave is
    // UNIMPLEMENTED.
    ClusterCalls* cluster = nullptr;
    const Clock* clock = &Clock::Real();
  };

  // All must outlive the service.
  TableService(const Manifest& manifest, PartitionSet& partitions,
               const RowTier& tier, TableMetrics& metrics, Options options);

  // What GetTable says.
  void SetReady(bool ready) { ready_.store(ready); }

  // New calls get DRAINING from now on, watches, fetches and recordings end,
  // streams end once their gathers have. GetTable, Exchange and Leave answer
  // on.
  void StopAccepting();

  // No gather, stream, watch, fetch or recording is open.
  bool Idle() const;

  // Sets the gauges that follow the service's state.
  void UpdateGauges() const;

  uint64_t max_rows_per_gather() const { return context_.gatherer.max_rows(); }
  // Largest request worth parsing.
  int max_request_bytes() const;

  // Takes calls from a queue. REQUIRES: the server that the service is
  // registered with has started.
  void Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) override;

 private:
  void ServeDescriptions(QueueLoop& loop, grpc::ServerCompletionQueue& queue);
  grpc::Status Describe(v1::GetTableResponse& response);
  grpc::Status Counted(TableMethod method, const absl::Status& status);

  std::atomic<bool> ready_{false};
  HeatRecorder heat_;
  ServiceContext context_;
  Sweeper sweeper_;  // last: it looks at the context
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_TABLE_SERVICE_H_

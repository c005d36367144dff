#ifndef ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_
#define ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "core/model/manifest.h"
#include "core/rpc/queue_loop.h"
#include "engram/v1/table.pb.h"
#include "table_server/gather/gatherer.h"
#include "table_server/gather/partition_reader.h"
#include "table_server/heat/heat_recorder.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/admission.h"
#include "table_server/service/cluster_calls.h"
#include "table_server/service/live_set.h"
#include "table_server/service/reply_buffers.h"
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
  ClusterCalls* const cluster;  // null: in none
  HeatRecorder& heat;
  Gatherer gatherer;
  PartitionReader partition_reader;
  Admission admission;
  TableMetrics& metrics;
  ReplyBuffers buffers;
  LiveSet streams;
  LiveSet watchers;
  LiveSet fetches;
  LiveSet heat_streams;
  std::atomic<bool> accepting{true};  // false: DRAINING
  // For rows that a tier fetches. Each of them is admitted.
  std::atomic<int64_t> gathers_waiting{0};
  // Where rows are gathered; none: on the threads of the queues. Last, so that
  // it is joined first.
  std::optional<ThreadPool> workers;

  absl::Status DrainingError() const;

  // Whether this thread may gather now, between two events.
  bool MayGatherHere(const QueueLoop& loop) const {
    return !workers.has_value() && loop.OnLoopThread();
  }
  // Runs a step of a gather later: on the workers, where those of small ones
  // are urgent, or, when no event waits, on the loop. OVERLOADED when too many
  // wait.
  absl::Status Schedule(
      QueueLoop& loop, absl::AnyInvocable<void()> step,
      ThreadPool::Urgency urgency = ThreadPool::Urgency::kNormal);

  // Admits a gather that asks for `reply_bytes` and holds `held_bytes` of them
  // at a time.
  absl::StatusOr<Admission::Ticket> Admit(const v1::GatherRequest& request,
                                          uint64_t reply_bytes,
                                          uint64_t held_bytes,
                                          absl::Time deadline);
};

// Rows of all layers of a request.
uint64_t RowCountOf(const v1::GatherRequest& request);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_SERVICE_CONTEXT_H_

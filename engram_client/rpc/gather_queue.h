#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_QUEUE_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_QUEUE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/routing_snapshot.h"
#include "engram_client/rpc/gather_segments.h"

namespace engram {

// Rows counted as work of a server for as long as the charge lives.
class LoadCharge {
 public:
  LoadCharge(std::shared_ptr<ServerLoad> load, uint64_t rows)
      : load_(std::move(load)), rows_(static_cast<int64_t>(rows)) {
    load_->rows_in_flight.fetch_add(rows_, std::memory_order_relaxed);
  }
  ~LoadCharge() { Release(); }
  LoadCharge(LoadCharge&&) = default;
  LoadCharge& operator=(LoadCharge&&) = delete;

  void Release() {
    if (load_ == nullptr) return;
    load_->rows_in_flight.fetch_sub(rows_, std::memory_order_relaxed);
    load_ = nullptr;
  }

 private:
  std::shared_ptr<ServerLoad> load_;
  int64_t rows_;
};

// A call that has its server and its rows, and was not started yet.
struct PlannedCall {
  ServerIndex server = kNoServer;
  std::string server_label;  // for messages
  std::vector<GatherSegment> segments;
  uint64_t rows = 0;
  LoadCharge charge;
  uint64_t generation = 0;  // of the server
};

// Segments of one gather that are not in flight: waiting for a server, or cut
// into calls that stand in line at one. Not synchronised.
class GatherQueue {
 public:
  // Calls of one gather that one server has at a time: enough to keep it busy,
  // while replies of a huge gather do not pile up in memory.
  static constexpr uint32_t kMaxCallsPerServer = 8;

  // `table_layers`: of each layer of the gather, its index in the table, by
  // which routing counts. A gather names any of them in any order.
  GatherQueue(uint64_t max_rows_per_call, std::vector<uint32_t> table_layers)
      : max_rows_per_call_(max_rows_per_call),
        table_layers_(std::move(table_layers)) {}

  void Add(absl::Span<const GatherPlan::Part> parts);
  void Add(GatherSegment segment) { waiting_.push_back(std::move(segment)); }

  // Gives servers to the waiting segments that have one now, and to those in
  // line at a server that is no choice for them any more. Returns when to
  // come again for those that wait for a time; those without a server wait
  // for another snapshot.
  absl::Time Route(const RoutingSnapshot& snapshot, RoutePolicy& policy,
                   absl::Time now);

  // Calls to other servers than `server` that together ask for all of
  // `segments`, none of them cut; none where not all can be had elsewhere now.
  // They are none of the queue's.
  std::vector<PlannedCall> PlanAround(ServerIndex server,
                                      std::vector<GatherSegment> segments,
                                      const RoutingSnapshot& snapshot,
                                      RoutePolicy& policy,
                                      absl::Time now) const;

  // The calls that may start; each counts at its server until CallEnded.
  std::vector<PlannedCall> TakeStartable();
  void CallEnded(ServerIndex server) { --servers_[server].in_flight; }

  // Takes the calls that have a segment that is `unfit` out of the server's
  // line: all their segments.
  std::vector<GatherSegment> TakeFromLine(
      ServerIndex server, absl::FunctionRef<bool(const GatherSegment&)> unfit);

  void Clear();

  bool empty() const;  // neither waiting nor in line
  absl::Span<const GatherSegment> waiting() const { return waiting_; }
  // Waiting and in line.
  std::vector<GatherPlan::Part> AllParts() const;

 private:
  struct Server {
    uint32_t in_flight = 0;
    std::list<PlannedCall> line;  // all of one generation
  };
  void TakeBackUnfit(const RoutingSnapshot& snapshot);
  // Whether a segment may stay in line at `server`: ready with its partition,
  // or draining with it and nobody ready but the avoided has it.
  bool IsFit(const RoutingSnapshot& snapshot, ServerIndex server,
             const GatherSegment& segment) const;
  // Takes what may be asked for now out of those that wait.
  std::vector<GatherSegment> TakeCandidates(absl::Time now);
  RouteItem ItemOf(const GatherSegment& segment) const {
    return {table_layers_[segment.part.layer_index],
            ToInt(segment.part.partition), segment.part.rows(),
            segment.avoid()};
  }
  std::vector<ServerIndex> Choose(const RoutingSnapshot& snapshot,
                                  RoutePolicy& policy,
                                  absl::Span<const GatherSegment> candidates,
                                  absl::Time now) const;
  void Line(const RoutingSnapshot& snapshot, ServerIndex server,
            std::vector<GatherSegment> segments);
  uint64_t MaxRowsOf(const ServerRoute& route) const;

  const uint64_t max_rows_per_call_;
  const std::vector<uint32_t> table_layers_;
  std::vector<GatherSegment> waiting_;
  std::vector<Server> servers_;  // of all snapshots so far
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_QUEUE_H_

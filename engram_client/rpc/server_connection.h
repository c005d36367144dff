#ifndef ENGRAM_ENGRAM_CLIENT_RPC_SERVER_CONNECTION_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_SERVER_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "engram/v1/table.pb.h"
#include "engram_client/routing/routing_table.h"
#include "engram_client/rpc/table_identity.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/rpc/transport_slots.h"
#include "engram_client/table_client.h"

namespace engram {

// Keeps one server address known: asks what the server is, has its identity
// admitted, connects what gathers use, keeps its WatchPartitions open and
// announces what it holds to the routing table. Whatever ends this withdraws
// the server and starts again after a backoff. A restarted server is simply
// admitted again.
//
// Thread safety: all methods may be called concurrently.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  // All must outlive the connection; its transport must be destroyed before it
  // is, since its callbacks use it.
  struct Environment {
    TransportSlots* transports = nullptr;
    RoutingTable* routing = nullptr;
    TableIdentity* identity = nullptr;
    TimerQueue* timers = nullptr;
    // After each answer, good or bad, to what the server is.
    std::function<void()> on_answer;
  };

  // Of the transport that its slot has in this generation.
  ServerConnection(ServerIndex index, uint64_t generation, std::string address,
                   Environment environment);

  void Start();
  // No more attempts. What is in flight ends with the transport.
  void Stop();

  TableClient::ServerState state() const;
  // It has said, once or more, what it is or that it fails.
  bool answered() const;

 private:
  void Attempt();
  void OnTable(absl::StatusOr<v1::GetTableResponse> response);
  void StartWatch();
  void OnMessage(uint64_t sequence, const v1::WatchPartitionsResponse& message);
  void OnWatchEnd(absl::Status status);
  // Ends the watch for a fault of ours or of the server's.
  void Break(uint64_t sequence, absl::Status why);
  void TryAgainLater(const absl::Status& why);

  absl::Status Apply(const v1::WatchPartitionsResponse& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplySnapshot(
      const v1::WatchPartitionsResponse::Snapshot& snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplyDelta(const v1::WatchPartitionsResponse::Delta& delta)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TransportSlots::Use Transport() const {
    return environment_.transports->Get(index_, generation_);
  }

  const ServerIndex index_;
  const uint64_t generation_;
  const std::string address_;
  const Environment environment_;

  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  TimerQueue::Timer retry_timer_ ABSL_GUARDED_BY(mutex_);
  uint32_t failures_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last snapshot
  std::string error_ ABSL_GUARDED_BY(mutex_);
  v1::GetTableResponse server_ ABSL_GUARDED_BY(mutex_);  // the last admitted
  // The watch in progress; its number tells late callbacks from others.
  uint64_t watch_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<TransportCall> watch_ ABSL_GUARDED_BY(mutex_);
  TimerQueue::Timer snapshot_timer_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  bool has_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<PartitionBitmap> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_SERVER_CONNECTION_H_

#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_TABLE_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_TABLE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/routing/routing_snapshot.h"

namespace engram {

// Collects what each server announces and publishes it as snapshots, which are
// as long as the highest slot that has a server.
//
// Thread safety: all methods may be called concurrently.
class RoutingTable {
 public:
  // The first `server_count` slots have servers. `on_change` runs after each
  // new snapshot, on the thread that updated and with no lock held.
  RoutingTable(size_t server_count, std::function<void()> on_change);

  // The slot has a server from now on, without any load. REQUIRES: it had none.
  void Add(ServerIndex server);
  // It has none any more. What the server has announced is withdrawn.
  void Remove(ServerIndex server);

  // A server's announcement replaces the one before.
  // REQUIRES: the slot has a server; bitmaps of the same sizes from all.
  void Announce(ServerIndex server, ServerRoute route);
  // The server was lost: it holds nothing until it announces again.
  void Withdraw(ServerIndex server);

  std::shared_ptr<const RoutingSnapshot> snapshot() const;

  // Waits for a snapshot in which every partition has a server; false at
  // `deadline`, or once Stop was called.
  bool WaitUntilComplete(absl::Time deadline) const;

  // Ends the waits.
  void Stop();

 private:
  void SetLength(size_t length) ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(update_mutex_);

  const std::function<void()> on_change_;

  Mutex update_mutex_;  // held while a snapshot is built, never by readers
  // By slot, the last of which has a server.
  std::vector<ServerRoute> servers_ ABSL_GUARDED_BY(update_mutex_);
  std::vector<std::shared_ptr<ServerLoad>> loads_
      ABSL_GUARDED_BY(update_mutex_);
  std::vector<bool> used_ ABSL_GUARDED_BY(update_mutex_);

  mutable Mutex snapshot_mutex_;
  mutable CondVar published_;
  std::shared_ptr<const RoutingSnapshot> snapshot_
      ABSL_GUARDED_BY(snapshot_mutex_);
  bool stopped_ ABSL_GUARDED_BY(snapshot_mutex_) = false;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_ROUTING_TABLE_H_

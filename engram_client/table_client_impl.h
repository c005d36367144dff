#ifndef ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_IMPL_H_
#define ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/membership/member_watcher.h"
#include "engram_client/routing/health_policy.h"
#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/routing_table.h"
#include "engram_client/rpc/call_monitor.h"
#include "engram_client/rpc/gather_operation.h"
#include "engram_client/rpc/server_set.h"
#include "engram_client/rpc/table_identity.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/rpc/transport_slots.h"
#include "engram_client/table_client.h"

namespace engram {

// TableClient::Create over any transport. Only composes: the work is in plan/,
// routing/ and rpc/.
//
// Handles may outlive the client. Destroying the client cancels its gathers
// and waits until they have told their end; not on a thread of the client.
class TableClientImpl final : public TableClient {
 public:
  // `members`: what options.members means; null without.
  static absl::StatusOr<std::unique_ptr<TableClient>> Create(
      Options options, TransportFactory make_transport,
      std::shared_ptr<MemberSource> members = nullptr);
  ~TableClientImpl() override;

  // Of each look for members, one at a time. Blocks while calls to servers that
  // are gone end.
  void OnMembers(const MemberWatcher::Observation& members);

  const TableInfo& table() const override { return *environment_.table; }
  std::unique_ptr<GatherHandle> Prefetch(
      std::vector<LayerGather> layers, absl::Time deadline,
      absl::AnyInvocable<void(const absl::Status&)> done) override;
  absl::Status WaitUntilComplete(absl::Time deadline) override;
  absl::Status CheckComplete() const override;
  std::vector<ServerState> servers() const override {
    return servers_.servers();
  }
  Stats stats() const override { return monitor_->stats(); }

 private:
  TableClientImpl(Options options, TransportFactory make_transport);

  absl::Status Connect(std::shared_ptr<MemberSource> members);
  // Until enough is known to begin, or `deadline`.
  void AwaitTable(absl::Time deadline);
  bool MayStillChange(const absl::Status& conflict) const;
  absl::Status NobodyAnswered() const;
  // Admits one more gather in flight, or says why not.
  absl::Status CountGather();
  // Of a snapshot that is not complete.
  std::string Incompleteness(const RoutingSnapshot& snapshot,
                             size_t max_problems) const;
  // Of `max_servers` at most.
  std::string ServerProblems(size_t max_servers) const;
  void OnAnswer();
  void OnRoutingChange();
  void NoteConnected();

  const Options options_;
  const std::shared_ptr<CallMonitor> monitor_;
  TimerQueue timers_;
  RoutingTable routing_;
  FewestRowsPolicy fewest_rows_;
  HealthPolicy policy_;
  TableIdentity identity_;
  TransportSlots transports_;
  GatherEnvironment environment_;  // constant once connected

  Mutex noting_;  // one thread at a time says who is connected
  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status look_ ABSL_GUARDED_BY(mutex_);  // the last one for members
  uint64_t gathers_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  // Until they have told their end.
  std::unordered_map<GatherOperation*, std::shared_ptr<GatherOperation>>
      gathers_ ABSL_GUARDED_BY(mutex_);

  ServerSet servers_;                       // uses all the others
  std::unique_ptr<MemberWatcher> watcher_;  // uses the servers
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_IMPL_H_

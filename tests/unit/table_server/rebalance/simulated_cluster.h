#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_CLUSTER_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/membership/member.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/rebalance/partition_index.h"
#include "tests/unit/table_server/rebalance/holding_checks.h"
#include "tests/unit/table_server/rebalance/simulated_time.h"

namespace engram::test {

struct SimulatedServer;
struct SimulatedRequest;
struct SimulatedResponse;

// How many clusters of a kind a test simulates: fewer where sanitizers slow it
// down.
inline constexpr uint64_t kSimulatedClusters = ENGRAM_SIMULATED_CLUSTERS;

// Servers that hand partitions over to each other in simulated time, over a
// network that delays, loses and reorders. Each has a HandOver, and either a
// MemberTracker with a source or views that the test sets. What must always
// hold is checked at every event that could break it.
class SimulatedCluster {
 public:
  using Names = std::vector<std::string>;
  struct Settings {
    uint32_t replicas = 1;
    HandOver::Options hand_over;
    // What takes up to so long.
    absl::Duration tick;      // between two looks of a server at what is due
    absl::Duration exchange;  // between two calls of a server to all its peers
    absl::Duration delay;     // of a message
    absl::Duration load;
    absl::Duration lease;  // of gathers under way
    double lost_messages = 0;
    double failed_loads = 0;
    // What the source says to a server. Null: no trackers, views are set.
    std::function<absl::StatusOr<std::vector<Member>>(const std::string&)>
        source;
    MemberTracker::Options membership;  // without `self`

    // Wide ranges, so that any of these can be slow against the others.
    static Settings Draw(Random& random);
  };
  struct Totals {
    uint64_t loads = 0;
    uint64_t discarded = 0;
    uint64_t withdrawn = 0;
    uint64_t announced_again = 0;
  };

  SimulatedCluster(Settings settings, uint64_t seed);

  void Start(const std::string& name);
  // The process ends at once, with all that it holds.
  void Kill(const std::string& name);
  // Ends when it is not needed, as on SIGTERM; with one replica it leaves.
  void Stop(const std::string& name);
  // Leaves for good and ends when it holds nothing.
  void Leave(const std::string& name);
  // Ends when it holds nothing.
  void EndWhenEmpty(const std::string& name);
  void SetView(const std::string& name, const Names& members);

  // Servers may crash whatever they hold: rows may be missing until they start
  // again.
  void AllowLosses() { checks_.AllowLosses(); }

  bool Runs(const std::string& name) const { return servers_.contains(name); }
  Names Running() const;
  // Whether `name` can crash: others hold all that it does.
  bool CanLose(const std::string& name) { return checks_.CanLose(name); }

  // Until something is broken, at most.
  void Run(absl::Duration duration);
  // Runs until every server holds what it owns and nothing else, and all agree
  // on `members`. Not within `limit`: that is broken.
  void Settle(const Names& members, absl::Duration limit);

  // What did not hold, and how it came to that; empty: all does.
  const std::string& broken() const { return checks_.broken(); }
  const Totals& totals() const { return totals_; }
  // What a server announces, by number of the partition.
  const std::vector<bool>& AnnouncedBy(const std::string& name) {
    return checks_.AnnouncedBy(name);
  }
  SimulatedTime& time() { return time_; }

 private:
  using Server = SimulatedServer;
  using Request = SimulatedRequest;
  using Response = SimulatedResponse;

  void Every(Server& server, absl::Duration most,
             void (SimulatedCluster::*what)(Server&));
  void AskSource(Server& server);
  void Tick(Server& server);
  void CarryOut(Server& server);
  void StartLoads(Server& server);
  void EndLoad(Server& server, const PartitionRef& ref);
  void DropLater(Server& server, const PartitionRef& ref, absl::Duration most);
  void EndIfDone(Server& server);
  absl::Duration SilentAfter() const;
  void Adopt(Server& server, const std::vector<Member>& members);
  void ExchangeWithAll(Server& server);
  void Answer(const Request& request);
  void TakeAnswer(const Response& response);
  void Announce(Server& server, const PartitionRef& ref);
  bool IsSettled(const Server& server, const Names& members) const;
  std::string Describe() const;

  const Settings settings_;
  const PartitionIndex index_;
  SimulatedTime time_;
  Random random_;
  HoldingChecks checks_;
  std::map<std::string, std::shared_ptr<Server>> servers_;
  uint64_t next_instance_id_ = 1;
  Totals totals_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_CLUSTER_H_

#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_SERVER_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/rebalance/holdings.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

// A process of a SimulatedCluster, and what these say to each other.
struct SimulatedServer : std::enable_shared_from_this<SimulatedServer> {
  SimulatedServer(std::string server_name, uint64_t id,
                  HandOver::Options options)
      : name(std::move(server_name)),
        instance_id(id),
        hand_over(SmallManifest(), options) {}

  const std::string name;
  const uint64_t instance_id;
  HandOver hand_over;
  std::optional<MemberTracker> tracker;
  Holdings holdings{SmallManifest()};
  std::map<std::string, uint64_t> instances;  // of those heard
  size_t loads_under_way = 0;
  bool end_when_empty = false;
  std::optional<absl::Time> stopped;
};

struct SimulatedRequest {
  std::weak_ptr<SimulatedServer> from;
  HandOver::Ask ask;  // what is asked of ask.peer; no partitions: nothing
  std::vector<MemberDeparture> departures;
};

struct SimulatedResponse {
  std::weak_ptr<SimulatedServer> to;
  std::string from;
  uint64_t instance_id = 0;
  std::string view_digest;
  bool ready = false;
  bool draining = false;
  std::vector<PartitionRef> held;
  std::vector<MemberDeparture> departures;
  uint64_t epoch = 0;
  std::vector<PartitionRef> acknowledged;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_SERVER_H_

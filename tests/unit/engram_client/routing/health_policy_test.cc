#include "engram_client/routing/health_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engram_client/routing/routing_table.h"
#include "tests/unit/engram_client/routing/routing_fixture.h"

namespace engram {
namespace {

using ::testing::ElementsAre;

class HealthPolicyTest : public ::testing::Test {
 protected:
  // Both have partition 0; 1 is at server 0, 2 at server 1 only.
  HealthPolicyTest() {
    table_.Announce(0, RouteOf("a", 3, {0, 1}));
    table_.Announce(1, RouteOf("b", 3, {0, 2}));
  }

  std::vector<ServerIndex> Route(const std::vector<RouteItem>& items) {
    std::vector<ServerIndex> servers(items.size());
    policy_.Route(*table_.snapshot(), items, {.now = now_, .shunned = {}},
                  absl::MakeSpan(servers));
    return servers;
  }
  // How many of 32 gathers take the server for partition 0.
  int Taken(ServerIndex server) {
    int taken = 0;
    for (int i = 0; i < 32; ++i) {
      taken += Route({{0, 0, 1}})[0] == server ? 1 : 0;
    }
    return taken;
  }
  void End(ServerIndex server, CallOutcome outcome, int times) {
    for (int i = 0; i < times; ++i) {
      health_.CallEnded(server, outcome, 1, now_);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  RoutingTable table_{2, [] {}};
  ServerHealth health_{2, ServerHealth::Options()};
  FewestRowsPolicy fewest_rows_{/*new_server_rows=*/100};
  HealthPolicy policy_{&health_, &fewest_rows_};
};

TEST_F(HealthPolicyTest, ChangesNothingWhileAllAreWell) {
  EXPECT_EQ(Taken(0), 16);
  EXPECT_EQ(Taken(1), 16);
}

TEST_F(HealthPolicyTest, AServerThatIsOutGetsOnlyWhatNobodyElseHas) {
  End(0, CallOutcome::kFailed, 20);
  ASSERT_TRUE(health_.IsOut(0, now_));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Route({{0, 0, 1}, {0, 1, 1}, {0, 2, 1}}), ElementsAre(1, 0, 1));
  }
  // Even then the one that failed these rows comes last.
  EXPECT_THAT(Route({{0, 0, 1, 1}}), ElementsAre(0));
}

TEST_F(HealthPolicyTest, OneProbeAtATime) {
  End(0, CallOutcome::kFailed, 20);
  now_ += absl::Seconds(30);
  table_.snapshot()->load(0)->rows_in_flight = 1;
  EXPECT_EQ(Taken(0), 0);
  table_.snapshot()->load(0)->rows_in_flight = 0;
  EXPECT_GT(Taken(0), 0);
}

TEST_F(HealthPolicyTest, AShareOfTheGathersForAServerThatComesBack) {
  End(0, CallOutcome::kFailed, 20);
  now_ += absl::Seconds(30);
  End(0, CallOutcome::kAnswered, 3);
  table_.snapshot()->load(1)->rows_in_flight = 1000;  // else it would be taken
  EXPECT_EQ(Taken(0), 2);
  End(0, CallOutcome::kAnswered, 8);
  EXPECT_EQ(Taken(0), 4);
  End(0, CallOutcome::kAnswered, 24);
  EXPECT_EQ(Taken(0), 32);
}

TEST_F(HealthPolicyTest, KeepsWhatOthersShun) {
  End(0, CallOutcome::kFailed, 20);
  const bool shunned[] = {false, true};
  std::vector<ServerIndex> servers(1);
  for (int i = 0; i < 4; ++i) {
    policy_.Route(*table_.snapshot(), {{{0, 2, 1}}},
                  {.now = now_, .shunned = shunned}, absl::MakeSpan(servers));
    EXPECT_THAT(servers, ElementsAre(1));
  }
}

}  // namespace
}  // namespace engram

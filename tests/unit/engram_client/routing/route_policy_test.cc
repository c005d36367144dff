#include "engram_client/routing/route_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "engram_client/routing/routing_table.h"
#include "tests/unit/engram_client/routing/routing_fixture.h"

namespace engram {
namespace {

using ::testing::ElementsAre;

class RoutePolicyTest : public ::testing::Test {
 protected:
  std::vector<ServerIndex> Route(const std::vector<RouteItem>& items) {
    std::vector<ServerIndex> servers(items.size());
    policy_.Route(*table_.snapshot(), items, RouteContext(),
                  absl::MakeSpan(servers));
    return servers;
  }
  void SetLoad(ServerIndex server, int64_t rows) {
    table_.snapshot()->load(server)->rows_in_flight = rows;
  }

  RoutingTable table_{3, [] {}};
  FewestRowsPolicy policy_{/*new_server_rows=*/100};
};

std::vector<RouteItem> Partitions(uint32_t count, uint32_t rows) {
  std::vector<RouteItem> items;
  for (uint32_t p = 0; p < count; ++p) items.push_back({0, p, rows});
  return items;
}

TEST_F(RoutePolicyTest, NoServerForWhatNobodyHolds) {
  table_.Announce(0, RouteOf("a", 3, {1}));
  EXPECT_THAT(Route(Partitions(3, 1)), ElementsAre(kNoServer, 0, kNoServer));
}

TEST_F(RoutePolicyTest, ASmallGatherStaysOnOneServer) {
  for (ServerIndex s = 0; s < 3; ++s) {
    table_.Announce(s, RouteOf("s", 8, {0, 1, 2, 3, 4, 5, 6, 7}));
  }
  const auto servers = Route(Partitions(8, 5));
  EXPECT_EQ(std::set<ServerIndex>(servers.begin(), servers.end()).size(), 1u);
}

TEST_F(RoutePolicyTest, SmallGathersTakeTurns) {
  for (ServerIndex s = 0; s < 3; ++s) {
    table_.Announce(s, RouteOf("s", 1, {0}));
  }
  std::map<ServerIndex, int> taken;
  for (int i = 0; i < 30; ++i) ++taken[Route(Partitions(1, 5))[0]];
  EXPECT_EQ(taken.size(), 3u);
  for (const auto& [server, times] : taken) EXPECT_EQ(times, 10);
}

TEST_F(RoutePolicyTest, ALargeGatherSpreads) {
  std::vector<uint32_t> all;
  for (uint32_t p = 0; p < 60; ++p) all.push_back(p);
  for (ServerIndex s = 0; s < 3; ++s) {
    table_.Announce(s, RouteOf("s", 60, all));
  }
  std::map<ServerIndex, int> rows;
  for (const ServerIndex s : Route(Partitions(60, 50))) rows[s] += 50;
  EXPECT_EQ(rows.size(), 3u);
  for (const auto& [server, count] : rows) EXPECT_NEAR(count, 1000, 100);
}

TEST_F(RoutePolicyTest, AvoidsABusyServer) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  table_.Announce(1, RouteOf("b", 1, {0}));
  SetLoad(0, 1000);
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Route(Partitions(1, 5)), ElementsAre(1));
  }
}

TEST_F(RoutePolicyTest, FollowsThePartitionsWithoutAChoice) {
  // Partition 2 is only at server 1, so the others go there as well.
  table_.Announce(0, RouteOf("a", 3, {0, 1}));
  table_.Announce(1, RouteOf("b", 3, {0, 1, 2}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Route(Partitions(3, 5)), ElementsAre(1, 1, 1));
  }
}

TEST_F(RoutePolicyTest, DrainingServersComeLast) {
  table_.Announce(0, RouteOf("a", 2, {0, 1}, /*draining=*/true));
  table_.Announce(1, RouteOf("b", 2, {0}));
  SetLoad(1, 100000);
  EXPECT_THAT(Route(Partitions(2, 5)), ElementsAre(1, 0));
}

TEST_F(RoutePolicyTest, TheAvoidedServerIsTakenOnlyAlone) {
  table_.Announce(0, RouteOf("a", 4, {0, 1, 2, 3}));
  table_.Announce(1, RouteOf("b", 4, {1}));
  table_.Announce(2, RouteOf("c", 4, {2}, /*draining=*/true));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Route({{0, 0, 5, 0}, {0, 1, 5, 0}, {0, 2, 5, 0}, {0, 2, 5, 2}}),
                ElementsAre(0, 1, 2, 0));
  }
}

TEST_F(RoutePolicyTest, ShunnedServersComeAfterDrainingOnesBeforeTheAvoided) {
  table_.Announce(0, RouteOf("a", 4, {0, 1, 2, 3}));
  table_.Announce(1, RouteOf("b", 4, {1, 3}));
  table_.Announce(2, RouteOf("c", 4, {2, 3}, /*draining=*/true));
  SetLoad(1, 100000);
  const bool shunned[] = {true, false, false};
  std::vector<ServerIndex> servers(6);
  for (int i = 0; i < 4; ++i) {
    policy_.Route(*table_.snapshot(),
                  {{{0, 0, 5},       // only there
                    {0, 1, 5},       // another is ready
                    {0, 2, 5},       // another drains
                    {0, 3, 5},       // one of each
                    {0, 1, 5, 1},    // the other has failed
                    {0, 0, 5, 0}}},  // the only one has failed
                  {.now = absl::Time(), .shunned = shunned},
                  absl::MakeSpan(servers));
    EXPECT_THAT(servers, ElementsAre(0, 1, 2, 1, 0, 0));
  }
}

TEST_F(RoutePolicyTest, AmongShunnedServersTheLoadDecides) {
  table_.Announce(0, RouteOf("a", 2, {0, 1}));
  table_.Announce(1, RouteOf("b", 2, {0, 1}));
  table_.Announce(2, RouteOf("c", 2, {1}));
  SetLoad(0, 1000);
  const bool shunned[] = {true, true, true};
  std::vector<ServerIndex> servers(2);
  policy_.Route(*table_.snapshot(), Partitions(2, 5),
                {.now = absl::Time(), .shunned = shunned},
                absl::MakeSpan(servers));
  EXPECT_THAT(servers, ElementsAre(1, 1));
}

}  // namespace
}  // namespace engram

#include "engram_client/routing/routing_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/engram_client/routing/routing_fixture.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RoutingTableTest, StartsWithNothing) {
  const RoutingTable table(2, [] {});
  const auto snapshot = table.snapshot();
  EXPECT_FALSE(snapshot->complete());
  EXPECT_THAT(snapshot->HoldersOf(0, 0).ready, IsEmpty());
  EXPECT_EQ(snapshot->servers().size(), 2u);
}

TEST(RoutingTableTest, HoldersFollowTheAnnouncements) {
  int changes = 0;
  RoutingTable table(3, [&] { ++changes; });
  table.Announce(0, RouteOf("a", 4, {0, 1}));
  const auto before = table.snapshot();
  table.Announce(2, RouteOf("c", 4, {1, 3}));
  const auto after = table.snapshot();
  EXPECT_EQ(changes, 2);
  EXPECT_THAT(after->HoldersOf(0, 0).ready, ElementsAre(0));
  EXPECT_THAT(after->HoldersOf(0, 1).ready, ElementsAre(0, 2));
  EXPECT_THAT(after->HoldersOf(0, 2).ready, IsEmpty());
  EXPECT_THAT(after->HoldersOf(0, 3).ready, ElementsAre(2));
  EXPECT_THAT(after->HoldersOf(0, 4).ready, IsEmpty());
  EXPECT_THAT(after->HoldersOf(1, 0).ready, IsEmpty());
  EXPECT_FALSE(after->complete());
  EXPECT_EQ(after->hole().partitions, 1u);
  EXPECT_EQ(after->hole().partition, 2u);
  // What was published stays as it was.
  EXPECT_THAT(before->HoldersOf(0, 3).ready, IsEmpty());
}

TEST(RoutingTableTest, DrainingServersStandApart) {
  RoutingTable table(2, [] {});
  table.Announce(0, RouteOf("a", 2, {0, 1}, /*draining=*/true));
  table.Announce(1, RouteOf("b", 2, {1}));
  const auto snapshot = table.snapshot();
  EXPECT_THAT(snapshot->HoldersOf(0, 0).ready, IsEmpty());
  EXPECT_THAT(snapshot->HoldersOf(0, 0).draining, ElementsAre(0));
  EXPECT_THAT(snapshot->HoldersOf(0, 1).ready, ElementsAre(1));
  EXPECT_THAT(snapshot->HoldersOf(0, 1).draining, ElementsAre(0));
  EXPECT_TRUE(snapshot->complete());
}

TEST(RoutingTableTest, AWithdrawnServerHoldsNothing) {
  int changes = 0;
  RoutingTable table(2, [&] { ++changes; });
  table.Announce(0, RouteOf("a", 2, {0, 1}));
  EXPECT_TRUE(table.snapshot()->complete());
  table.Withdraw(0);
  table.Withdraw(0);  // nothing new
  EXPECT_EQ(changes, 2);
  EXPECT_FALSE(table.snapshot()->complete());
}

TEST(RoutingTableTest, WaitUntilCompleteWakesAndTimesOut) {
  RoutingTable table(2, [] {});
  EXPECT_FALSE(table.WaitUntilComplete(absl::Now() + absl::Milliseconds(5)));
  std::thread other([&] {
    table.Announce(0, RouteOf("a", 2, {0}));
    table.Announce(1, RouteOf("b", 2, {1}));
  });
  EXPECT_TRUE(table.WaitUntilComplete(absl::Now() + absl::Seconds(30)));
  other.join();
  table.Withdraw(0);
  std::thread stopper([&] { table.Stop(); });
  EXPECT_FALSE(table.WaitUntilComplete(absl::InfiniteFuture()));
  stopper.join();
}

TEST(RoutingTableTest, ReadersAndWritersMayMeet) {
  std::atomic<int> changes{0};
  RoutingTable table(4, [&] { ++changes; });
  std::vector<std::thread> threads;
  for (ServerIndex server = 0; server < 4; ++server) {
    threads.emplace_back([&, server] {
      for (int i = 0; i < 200; ++i) {
        table.Announce(server, RouteOf("s", 100, {server, 50}));
        if (i % 3 == 0) table.Withdraw(server);
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    const auto snapshot = table.snapshot();
    for (const ServerIndex s : snapshot->HoldersOf(0, 50).ready) {
      ASSERT_TRUE(snapshot->servers()[s].held[0].Test(50));
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changes, 4 * (200 + 67));
}

TEST(RoutingTableTest, IsAsLongAsTheLastSlotThatHasAServer) {
  int changes = 0;
  RoutingTable table(0, [&] { ++changes; });
  for (ServerIndex i = 0; i < 3; ++i) table.Add(i);
  EXPECT_EQ(changes, 0);
  table.Announce(0, RouteOf("a", 1, {0}));
  table.Announce(2, RouteOf("c", 1, {0}));
  EXPECT_EQ(table.snapshot()->servers().size(), 3u);
  table.Remove(1);  // of which no snapshot says anything
  EXPECT_EQ(changes, 2);
  table.Remove(2);
  EXPECT_EQ(changes, 3);
  EXPECT_EQ(table.snapshot()->servers().size(), 1u);
  EXPECT_THAT(table.snapshot()->HoldersOf(0, 0).ready, ElementsAre(0));
  table.Remove(0);
  EXPECT_EQ(table.snapshot()->servers().size(), 0u);
  EXPECT_FALSE(table.snapshot()->complete());
}

TEST(RoutingTableTest, TheNextServerOfASlotBeginsWithoutHoldingAnything) {
  RoutingTable table(0, [] {});
  table.Add(0);
  table.Add(1);
  table.Announce(1, RouteOf("b", 1, {}));
  table.Announce(0, RouteOf("a", 1, {0}));
  const auto before = table.snapshot();
  before->load(0)->rows_in_flight = 100;
  table.Remove(0);
  table.Add(0);
  EXPECT_THAT(table.snapshot()->HoldersOf(0, 0).ready, IsEmpty());
  ServerRoute next = RouteOf("c", 1, {0});
  next.generation = 5;
  table.Announce(0, std::move(next));
  const auto after = table.snapshot();
  EXPECT_EQ(after->servers()[0].generation, 5u);
  EXPECT_EQ(after->load(0)->rows_in_flight, 0);
  EXPECT_EQ(before->load(0)->rows_in_flight, 100);
}

TEST(RoutingTableTest, SaysWhetherThereIsAChoice) {
  RoutingTable table(3, [] {});
  EXPECT_FALSE(table.snapshot()->has_choice());
  table.Announce(0, RouteOf("a", 3, {0, 1}));
  table.Announce(1, RouteOf("b", 3, {2}));
  EXPECT_FALSE(table.snapshot()->has_choice());
  table.Announce(2, RouteOf("c", 3, {1}, /*draining=*/true));
  EXPECT_TRUE(table.snapshot()->has_choice());
}

}  // namespace
}  // namespace engram

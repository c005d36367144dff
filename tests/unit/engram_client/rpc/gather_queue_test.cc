#include "engram_client/rpc/gather_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engram_client/routing/routing_table.h"
#include "tests/unit/engram_client/routing/routing_fixture.h"

namespace engram {
namespace {

GatherSegment Segment(uint32_t partition, uint32_t rows) {
  return {.part = {0, PartitionId{partition}, 0, rows}};
}

GatherSegment Segment(uint32_t partition, uint32_t rows, Setbacks setbacks) {
  GatherSegment segment = Segment(partition, rows);
  segment.setbacks = std::make_unique<Setbacks>(setbacks);
  return segment;
}

GatherQueue QueueOf(uint64_t max_rows_per_call) {
  return GatherQueue(max_rows_per_call, /*table_layers=*/{0});
}

std::vector<uint32_t> PartitionsOf(const std::vector<GatherPlan::Part>& parts) {
  std::vector<uint32_t> partitions;
  for (const auto& part : parts) partitions.push_back(ToInt(part.partition));
  return partitions;
}

class GatherQueueTest : public ::testing::Test {
 protected:
  absl::Time Route(GatherQueue& queue) {
    return queue.Route(*table_.snapshot(), policy_, now_);
  }
  int64_t Load(ServerIndex server) const {
    return table_.snapshot()->load(server)->rows_in_flight;
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  RoutingTable table_{2, [] {}};
  FewestRowsPolicy policy_;
};

TEST_F(GatherQueueTest, SegmentsWithoutAServerWaitForASnapshot) {
  GatherQueue queue = QueueOf(100);
  queue.Add(Segment(0, 5));
  EXPECT_EQ(Route(queue), absl::InfiniteFuture());
  EXPECT_EQ(queue.waiting().size(), 1u);
  table_.Announce(1, RouteOf("b", 1, {0}));
  Route(queue);
  EXPECT_TRUE(queue.waiting().empty());
  const auto calls = queue.TakeStartable();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].server, 1u);
  EXPECT_EQ(calls[0].rows, 5u);
}

TEST_F(GatherQueueTest, AServerHasAFewCallsAtATime) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  GatherQueue queue = QueueOf(10);
  queue.Add(Segment(0, 10 * (GatherQueue::kMaxCallsPerServer + 2)));
  Route(queue);
  EXPECT_EQ(queue.TakeStartable().size(), GatherQueue::kMaxCallsPerServer);
  EXPECT_TRUE(queue.TakeStartable().empty());
  EXPECT_EQ(queue.AllParts().size(), 2u);
  queue.CallEnded(0);
  EXPECT_EQ(queue.TakeStartable().size(), 1u);
}

TEST_F(GatherQueueTest, TheServersLimitCutsCalls) {
  ServerRoute route = RouteOf("a", 1, {0});
  route.max_rows_per_call = 4;
  table_.Announce(0, route);
  GatherQueue queue = QueueOf(100);
  queue.Add(Segment(0, 12));
  Route(queue);
  EXPECT_EQ(queue.TakeStartable().size(), 3u);
}

TEST_F(GatherQueueTest, LoadCountsWhatIsInLineAndInFlight) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  {
    GatherQueue queue = QueueOf(10);
    queue.Add(Segment(0, 10 * (GatherQueue::kMaxCallsPerServer + 1)));
    Route(queue);
    EXPECT_EQ(Load(0), 10 * (GatherQueue::kMaxCallsPerServer + 1));
    auto calls = queue.TakeStartable();
    calls.pop_back();
    EXPECT_EQ(Load(0), 10 * GatherQueue::kMaxCallsPerServer);
    queue.Clear();
    EXPECT_EQ(Load(0), 10 * (GatherQueue::kMaxCallsPerServer - 1));
  }
  EXPECT_EQ(Load(0), 0);
}

TEST_F(GatherQueueTest, AFailedServerWaitsWhereNobodyElseHasTheRows) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  GatherQueue queue = QueueOf(10);
  const absl::Time until = now_ + absl::Milliseconds(20);
  queue.Add(Segment(0, 5, {.avoid = 0, .avoid_until = until}));
  EXPECT_EQ(Route(queue), until);
  EXPECT_TRUE(queue.TakeStartable().empty());
  // Another server needs no waiting.
  table_.Announce(1, RouteOf("b", 1, {0}));
  EXPECT_EQ(Route(queue), absl::InfiniteFuture());
  const auto calls = queue.TakeStartable();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].server, 1u);
}

TEST_F(GatherQueueTest, AHeldSegmentWaitsWhoeverHasIt) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  GatherQueue queue = QueueOf(10);
  const absl::Time until = now_ + absl::Milliseconds(20);
  queue.Add(Segment(0, 5, {.hold_until = until}));
  EXPECT_EQ(Route(queue), until);
  queue.Route(*table_.snapshot(), policy_, until);
  EXPECT_EQ(queue.TakeStartable().size(), 1u);
}

TEST_F(GatherQueueTest, HeldSegmentsWaitWhileTheOthersGo) {
  table_.Announce(0, RouteOf("a", 5, {0, 1, 2, 4}));
  GatherQueue queue = QueueOf(100);
  const absl::Time until = now_ + absl::Milliseconds(20);
  queue.Add(Segment(0, 5));
  queue.Add(Segment(1, 6, {.hold_until = until}));
  queue.Add(Segment(2, 7));
  queue.Add(Segment(3, 8));  // nobody has it
  queue.Add(Segment(4, 9, {.hold_until = now_}));
  EXPECT_EQ(Route(queue), until);
  EXPECT_EQ(PartitionsOf(PartsOf(queue.waiting())),
            (std::vector<uint32_t>{1, 3}));
  const auto calls = queue.TakeStartable();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].rows, 5u + 7 + 9);
  EXPECT_EQ(PartitionsOf(PartsOf(calls[0].segments)),
            (std::vector<uint32_t>{0, 2, 4}));
}

TEST_F(GatherQueueTest, RoutingCountsByTheTablesLayers) {
  ServerRoute a = RouteOf("a", 3, {0, 1, 2});
  a.held.emplace_back(3);
  ServerRoute b = RouteOf("b", 3, {});
  b.held.push_back(a.held[0]);
  table_.Announce(0, a);
  table_.Announce(1, b);
  // The gather names the table's layers the other way round.
  GatherQueue queue(100, {1, 0});
  queue.Add({{.layer_index = 0, .partition = PartitionId{2}, .end = 4},
             {.layer_index = 1, .partition = {}, .begin = 4, .end = 9}});
  Route(queue);
  const auto calls = queue.TakeStartable();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].server, 0u);
  EXPECT_EQ(calls[0].segments[0].part.layer_index, 1u);
  EXPECT_EQ(calls[1].server, 1u);
  EXPECT_EQ(calls[1].segments[0].part.layer_index, 0u);
}

TEST_F(GatherQueueTest, TheNextServerOfASlotGetsNoCallsMeantForTheOneBefore) {
  ServerRoute first = RouteOf("a", 1, {0});
  first.generation = 1;
  table_.Announce(0, first);
  GatherQueue queue = QueueOf(10);
  queue.Add(Segment(0, 90));  // 9 calls, one more than may start
  Route(queue);
  const auto started = queue.TakeStartable();
  EXPECT_EQ(started.size(), 8u);
  EXPECT_EQ(started[0].generation, 1u);

  table_.Remove(0);
  table_.Add(0);
  ServerRoute second = RouteOf("b", 1, {0});
  second.generation = 2;
  table_.Announce(0, second);
  Route(queue);
  EXPECT_EQ(Load(0), 10);
  for (int i = 0; i < 8; ++i) queue.CallEnded(0);
  const auto calls = queue.TakeStartable();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].generation, 2u);
  EXPECT_EQ(calls[0].server_label, "server b at ");
}

TEST_F(GatherQueueTest, SnapshotsMayGrowAndShrink) {
  RoutingTable table(0, [] {});
  const auto route = [&](GatherQueue& queue) {
    return queue.Route(*table.snapshot(), policy_, now_);
  };
  GatherQueue queue = QueueOf(10);
  queue.Add(Segment(0, 90));
  EXPECT_EQ(route(queue), absl::InfiniteFuture());
  table.Add(5);
  table.Announce(5, RouteOf("f", 1, {0}));
  route(queue);
  EXPECT_EQ(queue.TakeStartable().size(), 8u);
  table.Remove(5);
  route(queue);
  ASSERT_EQ(queue.waiting().size(), 1u);
  EXPECT_EQ(queue.waiting()[0].part.rows(), 10u);
  queue.CallEnded(5);
  EXPECT_TRUE(queue.TakeStartable().empty());
  // A hedge may have gone where the queue never sent anything.
  EXPECT_TRUE(queue.TakeFromLine(9, [](const auto&) { return true; }).empty());
}

class PlanAroundTest : public GatherQueueTest {
 protected:
  std::vector<PlannedCall> PlanAround(std::vector<GatherSegment> segments) {
    return QueueOf(/*max_rows_per_call=*/10)
        .PlanAround(0, std::move(segments), *table_.snapshot(), policy_, now_);
  }
  static std::vector<GatherSegment> Two(GatherSegment a, GatherSegment b) {
    std::vector<GatherSegment> segments;
    segments.push_back(std::move(a));
    segments.push_back(std::move(b));
    return segments;
  }
};

TEST_F(PlanAroundTest, AllRowsAtOtherServers) {
  table_.Announce(0, RouteOf("a", 2, {0, 1}));
  table_.Announce(1, RouteOf("b", 2, {0, 1}));
  const auto calls = PlanAround(Two(Segment(0, 4), Segment(1, 6)));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].server, 1u);
  EXPECT_EQ(calls[0].rows, 10u);
  EXPECT_EQ(Load(1), 10);
}

TEST_F(PlanAroundTest, NoneWhereOneIsNowhereElse) {
  table_.Announce(0, RouteOf("a", 2, {0, 1}));
  table_.Announce(1, RouteOf("b", 2, {0}));
  EXPECT_TRUE(PlanAround(Two(Segment(0, 4), Segment(1, 6))).empty());
  EXPECT_EQ(Load(1), 0);
}

TEST_F(PlanAroundTest, NoneAtAServerThatHasJustFailedThem) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  table_.Announce(1, RouteOf("b", 1, {0}));
  const Setbacks failed{.avoid = 1,
                        .avoid_until = now_ + absl::Milliseconds(1)};
  EXPECT_TRUE(PlanAround(Two(Segment(0, 4), Segment(0, 4, failed))).empty());
}

TEST_F(PlanAroundTest, NothingIsCut) {
  table_.Announce(0, RouteOf("a", 2, {0, 1}));
  table_.Announce(1, RouteOf("b", 2, {0, 1}));
  EXPECT_TRUE(PlanAround(Two(Segment(0, 4), Segment(1, 7))).empty());
}

class LineTest : public GatherQueueTest {
 protected:
  // Two calls are in line at server 0, the only one.
  LineTest() {
    table_.Announce(0, RouteOf("a", 2, {0}));
    queue_.Add(Segment(0, 10 * (GatherQueue::kMaxCallsPerServer + 2)));
    Route(queue_);
    EXPECT_EQ(queue_.TakeStartable().size(), GatherQueue::kMaxCallsPerServer);
  }
  void ExpectBothAt(ServerIndex server) {
    Route(queue_);
    const auto calls = queue_.TakeStartable();
    ASSERT_EQ(calls.size(), 2u);
    for (const PlannedCall& call : calls) EXPECT_EQ(call.server, server);
  }

  GatherQueue queue_ = QueueOf(10);
};

TEST_F(LineTest, LeavesAServerThatIsGone) {
  table_.Withdraw(0);
  Route(queue_);
  EXPECT_EQ(queue_.waiting().size(), 2u);
  table_.Announce(1, RouteOf("b", 2, {0}));
  ExpectBothAt(1);
}

TEST_F(LineTest, LeavesADrainingServerWhereAnotherIsReady) {
  table_.Announce(0, RouteOf("a", 2, {0}, /*draining=*/true));
  Route(queue_);
  EXPECT_TRUE(queue_.waiting().empty());
  EXPECT_TRUE(queue_.TakeStartable().empty());
  table_.Announce(1, RouteOf("b", 2, {0}));
  ExpectBothAt(1);
}

TEST_F(LineTest, LeavesAServerThatHasNotThePartitionAnyMore) {
  table_.Announce(0, RouteOf("a", 2, {1}));
  table_.Announce(1, RouteOf("b", 2, {0}));
  ExpectBothAt(1);
}

TEST_F(LineTest, GivesBackTheCallsWithAnUnfitSegment) {
  EXPECT_TRUE(queue_.TakeFromLine(0, [](const GatherSegment&) { return false; })
                  .empty());
  bool first = true;
  const auto taken = queue_.TakeFromLine(
      0, [&](const GatherSegment&) { return std::exchange(first, false); });
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].part.rows(), 10u);
  EXPECT_EQ(queue_.AllParts().size(), 1u);
  queue_.TakeFromLine(0, [](const GatherSegment&) { return true; });
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace engram

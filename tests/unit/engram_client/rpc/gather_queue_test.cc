#include "engram_client/rpc/gather_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "engram_client/routing/routing_table.h"
#include "tests/unit/engram_client/routing/routing_fixture.h"

namespace engram {
namespace {

GatherSegment Segment(uint32_t partition, uint32_t rows) {
  return {.part = {0, PartitionId{partition}, 0, rows}};
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
  GatherQueue queue(2, 100);
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
  GatherQueue queue(2, 10);
  queue.Add(Segment(0, 10 * (GatherQueue::kMaxCallsPerServer + 2)));
  Route(queue);
  EXPECT_EQ(queue.TakeStartable().size(), GatherQueue::kMaxCallsPerServer);
  EXPECT_TRUE(queue.TakeStartable().empty());
  EXPECT_EQ(queue.AllSegments().size(), 2u);
  queue.CallEnded(0);
  EXPECT_EQ(queue.TakeStartable().size(), 1u);
}

TEST_F(GatherQueueTest, TheServersLimitCutsCalls) {
  ServerRoute route = RouteOf("a", 1, {0});
  route.max_rows_per_call = 4;
  table_.Announce(0, route);
  GatherQueue queue(2, 100);
  queue.Add(Segment(0, 12));
  Route(queue);
  EXPECT_EQ(queue.TakeStartable().size(), 3u);
}

TEST_F(GatherQueueTest, LoadCountsWhatIsInLineAndInFlight) {
  table_.Announce(0, RouteOf("a", 1, {0}));
  {
    GatherQueue queue(2, 10);
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
  GatherQueue queue(2, 10);
  GatherSegment segment = Segment(0, 5);
  segment.avoid = 0;
  segment.avoid_until = now_ + absl::Milliseconds(20);
  queue.Add(segment);
  EXPECT_EQ(Route(queue), segment.avoid_until);
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
  GatherQueue queue(2, 10);
  GatherSegment segment = Segment(0, 5);
  segment.hold_until = now_ + absl::Milliseconds(20);
  queue.Add(segment);
  EXPECT_EQ(Route(queue), segment.hold_until);
  queue.Route(*table_.snapshot(), policy_, segment.hold_until);
  EXPECT_EQ(queue.TakeStartable().size(), 1u);
}

}  // namespace
}  // namespace engram

#include "engram_client/rpc/calls_in_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CallsInFlightTest : public ::testing::Test {
 protected:
  // A call for partitions of two rows each, in flight or a hedge.
  GatherCallPtr MakeCall(CallKind kind, std::vector<uint32_t> partitions) {
    std::vector<GatherSegment> segments;
    for (const uint32_t p : partitions) {
      segments.push_back({.part = {0, PartitionId{p}, 2 * p, 2 * p + 2}});
    }
    const uint64_t rows = 2 * segments.size();
    return std::make_shared<GatherCall>(
        nullptr, kind,
        PlannedCall{kind == CallKind::kHedge ? 1U : 0U, "server",
                    std::move(segments), rows, LoadCharge(load_, rows)});
  }
  GatherCallPtr AddCall(std::vector<uint32_t> partitions) {
    GatherCallPtr call = MakeCall(CallKind::kFirst, std::move(partitions));
    calls_.Add(call);
    return call;
  }
  GatherCallPtr AddHedge(GatherCall& primary,
                         std::vector<uint32_t> partitions) {
    GatherCallPtr hedge = MakeCall(CallKind::kHedge, std::move(partitions));
    hedge->WriteTo(buffers_->Take(0));
    calls_.AddHedge(primary, hedge);
    return hedge;
  }
  static std::vector<uint32_t> PartitionsOf(
      absl::Span<const GatherSegment> segments) {
    std::vector<uint32_t> partitions;
    for (const GatherSegment& segment : segments) {
      partitions.push_back(ToInt(segment.part.partition));
    }
    return partitions;
  }

  const std::shared_ptr<ServerLoad> load_ = std::make_shared<ServerLoad>();
  const std::shared_ptr<HedgeBuffers> buffers_ = std::make_shared<HedgeBuffers>(
      100, std::make_shared<prometheus::Gauge>());
  CallsInFlight calls_;
};

TEST_F(CallsInFlightTest, ACallWithoutHedges) {
  const auto a = AddCall({1});
  const auto b = AddCall({2, 3});
  const auto answered = calls_.OnAnswered(a);
  EXPECT_THAT(answered.arrived, IsEmpty());
  EXPECT_THAT(answered.useless, IsEmpty());
  EXPECT_EQ(answered.beaten, nullptr);
  EXPECT_THAT(PartitionsOf(calls_.OnFailed(b).failed), ElementsAre(2, 3));
  EXPECT_THAT(calls_.calls(), IsEmpty());
}

TEST_F(CallsInFlightTest, ThePrimaryAnswersFirst) {
  const auto primary = AddCall({1, 2, 3});
  const auto early = AddHedge(*primary, {1, 2});
  const auto late = AddHedge(*primary, {3});
  EXPECT_THAT(calls_.OnAnswered(early).arrived, IsEmpty());
  const auto outcome = calls_.OnAnswered(primary);
  EXPECT_THAT(outcome.useless, ElementsAre(late));
  EXPECT_EQ(outcome.lost_hedges, 2u);
  EXPECT_THAT(outcome.arrived, IsEmpty());
  EXPECT_THAT(calls_.calls(), IsEmpty());
}

TEST_F(CallsInFlightTest, AllHedgesTogetherBeatThePrimary) {
  const auto primary = AddCall({1, 2, 3});
  const auto a = AddHedge(*primary, {1, 2});
  const auto b = AddHedge(*primary, {3});
  EXPECT_EQ(calls_.OnAnswered(a).beaten, nullptr);
  const auto outcome = calls_.OnAnswered(b);
  EXPECT_EQ(outcome.beaten, primary);
  EXPECT_THAT(outcome.arrived, UnorderedElementsAre(a, b));
  EXPECT_THAT(calls_.calls(), IsEmpty());
}

TEST_F(CallsInFlightTest, WhenThePrimaryFailsItsHedgesGoOn) {
  const auto primary = AddCall({1, 2, 3});
  const auto arrived = AddHedge(*primary, {1});
  const auto waiting = AddHedge(*primary, {3});
  calls_.OnAnswered(arrived);
  auto outcome = calls_.OnFailed(primary);
  EXPECT_THAT(PartitionsOf(outcome.failed), ElementsAre(2));
  EXPECT_THAT(outcome.arrived, ElementsAre(arrived));
  EXPECT_THAT(outcome.orphans, ElementsAre(waiting));
  // Now it is a call like any other, but for its buffer.
  outcome = calls_.OnAnswered(waiting);
  EXPECT_THAT(outcome.arrived, ElementsAre(waiting));
  EXPECT_EQ(outcome.beaten, nullptr);
}

TEST_F(CallsInFlightTest, AHedgeThatFailsIsForgotten) {
  const auto primary = AddCall({1, 2});
  const auto a = AddHedge(*primary, {1});
  const auto b = AddHedge(*primary, {2});
  EXPECT_THAT(calls_.OnFailed(a).failed, IsEmpty());
  EXPECT_THAT(PartitionsOf(CallsInFlight::Unhedged(*primary)), ElementsAre(1));
  EXPECT_EQ(calls_.OnAnswered(b).beaten, nullptr);
  const auto again = AddHedge(*primary, {1});
  EXPECT_THAT(CallsInFlight::Unhedged(*primary), IsEmpty());
  EXPECT_EQ(calls_.OnAnswered(again).beaten, primary);
}

TEST_F(CallsInFlightTest, AnOrphanMayBeHedgedInItsTurn) {
  const auto primary = AddCall({1});
  const auto orphan = AddHedge(*primary, {1});
  orphan->hedge_at = absl::UnixEpoch();
  EXPECT_THAT(calls_.DueForHedge(absl::UnixEpoch()), IsEmpty());
  calls_.OnFailed(primary);
  EXPECT_THAT(calls_.DueForHedge(absl::UnixEpoch()), ElementsAre(orphan));
  const auto hedge = AddHedge(*orphan, {1});
  const auto outcome = calls_.OnAnswered(hedge);
  EXPECT_EQ(outcome.beaten, orphan);
  EXPECT_THAT(outcome.arrived, ElementsAre(hedge));
}

TEST_F(CallsInFlightTest, ACopyOfASegmentHasItsSetbacks) {
  const auto call = AddCall({1});
  NoteFailure(call->planned.segments[0],
              {7, absl::UnavailableError(""), absl::UnixEpoch()});
  const auto unhedged = CallsInFlight::Unhedged(*call);
  ASSERT_EQ(unhedged.size(), 1u);
  EXPECT_EQ(unhedged[0].avoid(), 7u);
  EXPECT_EQ(call->planned.segments[0].avoid(), 7u);
}

TEST_F(CallsInFlightTest, TheEarliestHedgeComesFirst) {
  EXPECT_EQ(calls_.NextHedge(), absl::InfiniteFuture());
  const auto a = AddCall({1});
  const auto b = AddCall({2});
  a->hedge_at = absl::FromUnixSeconds(20);
  b->hedge_at = absl::FromUnixSeconds(10);
  EXPECT_EQ(calls_.NextHedge(), absl::FromUnixSeconds(10));
  EXPECT_THAT(calls_.DueForHedge(absl::FromUnixSeconds(15)), ElementsAre(b));
  EXPECT_THAT(calls_.DueForHedge(absl::FromUnixSeconds(20)),
              UnorderedElementsAre(a, b));
}

}  // namespace
}  // namespace engram

#include <gtest/gtest.h>

#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/gather_operation_fixture.h"

namespace engram {
namespace {

TEST_F(GatherOperationTest, WhenAHedgeFailsTheNextGoesToAThirdServer) {
  for (ServerIndex s = 0; s < 3; ++s) Announce(s, {0});
  LoadServer(1);
  LoadServer(2);
  LoadServer(2);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[0].Await(0);
  servers_[1].Await(0)->End(WithRetryAfter(
      MakeError(ErrorReason::kOverloaded, "full"), absl::Seconds(30)));
  servers_[2].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(servers_[1].calls(), 1u);
}

TEST_F(GatherOperationTest, HedgesOfOneCallGoToSeveralServers) {
  AnnounceOneWithTwoPartners();
  GatherBuffers buffers({3, 17, 18});
  const auto gather = Start(buffers);
  const auto primary = servers_[0].Await(0);
  EXPECT_EQ(primary->row_count(), 3u);
  const auto one = servers_[1].Await(0);
  const auto two = servers_[2].Await(0);
  EXPECT_EQ(one->row_count(), 1u);
  EXPECT_EQ(two->row_count(), 2u);
  one->Answer();
  EXPECT_FALSE(gather->ended());
  EXPECT_FALSE(primary->cancelled());  // it has what the other has not yet
  EXPECT_TRUE(buffers.Poisoned());
  two->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_TRUE(primary->cancelled());
}

TEST_F(GatherOperationTest, WhatAHedgeHasIsUsedWhenTheCallFails) {
  AnnounceOneWithTwoPartners();
  GatherBuffers buffers({3, 17, 18});
  const auto gather = Start(buffers);
  const auto primary = servers_[0].Await(0);
  const auto two = servers_[2].Await(0);
  servers_[1].Await(0)->Answer();
  primary->End(absl::UnavailableError("reset"));
  EXPECT_FALSE(gather->ended());
  two->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(servers_[0].calls() + servers_[1].calls() + servers_[2].calls(),
            3u);
  EXPECT_EQ(Hedges(HedgeEnd::kWon), 2);
}

TEST_F(GatherOperationTest, AServerThatHasAnsweredAHedgeHasNoLoadOfIt) {
  AnnounceOneWithTwoPartners();
  GatherBuffers buffers({3, 17, 18});
  const auto gather = Start(buffers);
  const auto two = servers_[2].Await(0);
  const auto load = routing_.snapshot()->load(1);
  const int64_t rows = load->rows_in_flight;
  servers_[1].Await(0)->Answer();
  EXPECT_FALSE(gather->ended());
  EXPECT_EQ(load->rows_in_flight, rows - 1);
  two->Answer();
  EXPECT_TRUE(gather->Wait().ok());
}

TEST_F(GatherOperationTest, HedgesThatWaitForOthersAreLostAtTheEnd) {
  AnnounceOneWithTwoPartners();
  GatherBuffers buffers({3, 17, 18});
  const auto gather = Start(buffers);
  servers_[2].Await(0);
  servers_[1].Await(0)->Answer();
  gather->Cancel();
  EXPECT_TRUE(absl::IsCancelled(gather->Wait()));
  EXPECT_EQ(Hedges(HedgeEnd::kLost), 2);
  EXPECT_TRUE(buffers.Poisoned());
}

// The gather has to wait for it anyhow.
TEST_F(GatherOperationTest, ACallIsNotHedgedWhenARowIsNowhereElse) {
  Announce(0, {0, 1});
  Announce(1, {0});
  LoadServer(1);
  GatherBuffers buffers({3, 17, 18});
  const auto gather = Start(buffers, absl::Now() + absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(gather->Wait()));
  EXPECT_EQ(servers_[0].calls(), 1u);
  EXPECT_EQ(servers_[1].calls(), 0u);
}

TEST_F(GatherOperationTest, ACallIsHedgedOnceAnotherServerHasTheRows) {
  Announce(0, {0});
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[0].Await(0);
  Announce(1, {0});
  gather->OnRoutingChange();
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
}

TEST_F(GatherOperationTest, AHedgeThatTookOverMayBeHedged) {
  for (ServerIndex s = 0; s < 3; ++s) Announce(s, {0});
  LoadServer(1);
  LoadServer(2);
  LoadServer(2);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  LoadServer(0);
  LoadServer(0);
  LoadServer(0);
  primary->End(absl::UnavailableError("reset"));
  servers_[2].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  AwaitCancel(hedge);
  EXPECT_EQ(Hedges(HedgeEnd::kWon), 1);
  EXPECT_EQ(Hedges(HedgeEnd::kLost), 1);
}

}  // namespace
}  // namespace engram

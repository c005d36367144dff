#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/gather_operation_fixture.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

// Server 0 is asked first, then 1.
class HedgeTest : public GatherOperationTest {
 protected:
  HedgeTest() {
    Announce(0, {0, 1, 2});
    Announce(1, {0, 1, 2});
    LoadServer(1);
  }

  GatherBuffers buffers_{{0, 20, 40, 20}};
};

TEST_F(HedgeTest, ASlowCallIsBeaten) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  EXPECT_FALSE(primary->cancelled());
  EXPECT_EQ(hedge->row_count(), 3u);
  hedge->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
  EXPECT_TRUE(primary->cancelled());
  // The loser never writes.
  primary->WriteRubbish();
  EXPECT_TRUE(buffers_.Right());
  primary->End(absl::OkStatus());
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_EQ(gather->stats().hedges, 1u);
  EXPECT_EQ(gather->stats().calls, 2u);
  EXPECT_EQ(gather->stats().servers, 2u);
  EXPECT_EQ(stats().hedges_won, 1u);
}

TEST_F(HedgeTest, AHedgeIsCancelledWhenTheCallAnswers) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  hedge->WriteRubbish();  // stays in the buffer of the hedge
  EXPECT_TRUE(buffers_.Poisoned());
  primary->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
  EXPECT_TRUE(hedge->cancelled());
  hedge->WriteRubbish();
  hedge->End(absl::CancelledError("cancelled"));
  EXPECT_TRUE(buffers_.Right());
  EXPECT_EQ(Hedges(HedgeEnd::kLost), 1);
}

TEST_F(HedgeTest, WhatTheLoserWroteIsOverwritten) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  primary->WriteRubbish();
  hedge->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
}

TEST_F(HedgeTest, AHedgeThatFailsChangesNothing) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  servers_[1].Await(0)->End(absl::InternalError("broken"));
  const auto second = servers_[1].Await(1);  // after another delay
  EXPECT_FALSE(gather->ended());
  primary->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
  EXPECT_TRUE(second->cancelled());
  EXPECT_EQ(Hedges(HedgeEnd::kFailed), 1);
}

TEST_F(HedgeTest, AHedgeThatFailsIsSentAgainBeforeTheDeadline) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Hours(1)}});
  const absl::Time deadline = absl::Now() + absl::Seconds(2);
  const auto gather = Start(buffers_, deadline);
  servers_[1].Await(0)->End(absl::UnavailableError("reset"));
  servers_[1].Await(1)->Answer();
  EXPECT_LT(absl::Now(), deadline);
  EXPECT_TRUE(gather->Wait().ok());
}

// Not before the time that it asked for, though the call is slow.
TEST_F(HedgeTest, AServerThatRefusesAHedgeIsObeyed) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const absl::Time refused = absl::Now();
  servers_[1].Await(0)->End(WithRetryAfter(
      MakeError(ErrorReason::kOverloaded, "full"), absl::Milliseconds(150)));
  servers_[1].Await(1)->Answer();
  EXPECT_GE(absl::Now(), refused + absl::Milliseconds(149));
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(primary->cancelled());
}

TEST_F(HedgeTest, WhenTheCallFailsItsHedgeTakesOver) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  primary->End(absl::UnavailableError("reset"));
  EXPECT_EQ(servers_[1].calls(), 1u);  // nothing is asked for again
  hedge->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
  EXPECT_EQ(stats().retries, 0u);
  EXPECT_EQ(Hedges(HedgeEnd::kWon), 1);
}

TEST_F(HedgeTest, WhenBothFailTheRowsAreAskedForAgain) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  primary->End(absl::UnavailableError("reset"));
  hedge->End(absl::UnavailableError("reset, too"));
  YieldUntil([&] { return servers_[0].calls() + servers_[1].calls() >= 3; });
  servers_[servers_[0].calls() == 2 ? 0 : 1].Await(1)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
}

TEST_F(HedgeTest, TheDeadlineEndsBoth) {
  const auto gather = Start(buffers_, absl::Now() + absl::Milliseconds(100));
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no answer from server a at x:0"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no answer from server b at x:1"));
  AwaitCancel(primary);
  AwaitCancel(hedge);
  primary->WriteRubbish();
  hedge->Answer();
  EXPECT_TRUE(buffers_.Poisoned());
}

TEST_F(HedgeTest, CancellingEndsBoth) {
  const auto gather = Start(buffers_);
  const auto primary = servers_[0].Await(0);
  const auto hedge = servers_[1].Await(0);
  gather->Cancel();
  EXPECT_TRUE(absl::IsCancelled(gather->Wait()));
  AwaitCancel(primary);
  AwaitCancel(hedge);
  hedge->Answer();
  primary->Answer();
  EXPECT_TRUE(buffers_.Poisoned());
}

TEST_F(HedgeTest, AtMostHalfOfWhatIsLeftPassesBeforeIt) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Hours(1)}});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(500);
  const auto gather = Start(buffers_, deadline);
  servers_[1].Await(0)->Answer();
  EXPECT_LT(absl::Now(), deadline);
  EXPECT_TRUE(gather->Wait().ok());
}

TEST_F(HedgeTest, NoneWithoutMemory) {
  Watch({.max_hedge_buffer_bytes = 3 * FakeTable::kRowBytes - 1,
         .times = {.first_hedge_delay = absl::Milliseconds(2)}});
  const auto gather = Start(buffers_);
  AwaitRefusedHedge();
  EXPECT_EQ(servers_[1].calls(), 0u);
  servers_[0].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
}

TEST_F(HedgeTest, NoneWithoutATokenUnlessTheServerIsOut) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Milliseconds(2)},
         .budget = {.share = 0, .burst = 0}});
  const auto gather = Start(buffers_);
  AwaitRefusedHedge();
  EXPECT_EQ(servers_[1].calls(), 0u);
  for (int i = 0; i < 20; ++i) {
    environment_.monitor->CallEnded(
        {0, 1, CallOutcome::kFailed, absl::Milliseconds(1)}, SteadyNow());
  }
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers_.Right());
}

TEST_F(HedgeTest, ACallThatCannotBeHedgedMakesItsServerLookBad) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Hours(1)},
         .budget = {.share = 0, .burst = 0}});
  std::vector<std::unique_ptr<GatherBuffers>> buffers;
  std::vector<std::shared_ptr<GatherOperation>> gathers;
  const absl::Time deadline = absl::Now() + absl::Milliseconds(500);
  for (int i = 0; i < 20; ++i) {
    buffers.push_back(std::make_unique<GatherBuffers>(std::vector<RowId>{1}));
    gathers.push_back(Start(*buffers.back(), deadline));
  }
  for (size_t i = 0; i < gathers.size(); ++i) {
    servers_[1].Await(i)->Answer();
    servers_[0].Await(i);
  }
  for (const auto& gather : gathers) EXPECT_TRUE(gather->Wait().ok());
  EXPECT_LT(absl::Now(), deadline);
  EXPECT_EQ(stats().ejections, 1u);
}

TEST_F(HedgeTest, ToAServerThatIsOutOnlyWhenWaitingLongerDidNotHelp) {
  for (int i = 0; i < 20; ++i) {
    environment_.monitor->CallEnded(
        {1, 1, CallOutcome::kFailed, absl::Milliseconds(1)}, SteadyNow());
  }
  const auto gather = Start(buffers_);
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_EQ(environment_.monitor->metrics().overdue_calls.Value(), 1);
}

TEST_F(HedgeTest, WhatStandsInLineAtASlowServerGoesElsewhere) {
  environment_.max_rows_per_call = 1;
  std::vector<RowId> rows;
  for (RowId row = 0; row < 40; ++row) rows.push_back(row);
  GatherBuffers buffers(rows);
  const auto gather = Start(buffers);
  for (size_t i = 0; i < rows.size(); ++i) servers_[1].Await(i)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(servers_[0].calls(), GatherQueue::kMaxCallsPerServer);
}

// One row for many slots takes long to write.
TEST_F(HedgeTest, RowsOfHedgesComeAfterAWriteThatIsUnderWay) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Milliseconds(1)},
         .budget = {.share = 1, .burst = 1000}});
  for (size_t round = 0; round < 20; ++round) {
    GatherBuffers buffers(std::vector<RowId>(100000, 7));
    const auto gather = Start(buffers);
    const auto primary = servers_[0].Await(round);
    const auto hedge = servers_[1].Await(round);
    std::atomic<bool> writing{false};
    std::thread loser([&] {
      writing = true;
      primary->WriteRubbish();
      primary->WriteRubbish();
    });
    YieldUntil([&] { return writing.load(); });
    hedge->Answer();
    EXPECT_TRUE(gather->Wait().ok());
    EXPECT_TRUE(buffers.Right());
    loser.join();
    EXPECT_TRUE(buffers.Right());
    gather->WaitUntilTold();
  }
}

// Two threads answer at once; sometimes a third cancels.
TEST_F(HedgeTest, AnyoneMayBeFirst) {
  Watch({.max_hedge_buffer_bytes = 1 << 20,
         .times = {.first_hedge_delay = absl::Milliseconds(2)},
         .budget = {.share = 1, .burst = 1000}});
  for (int round = 0; round < 200; ++round) {
    buffers_.Poison();
    const size_t first = servers_[0].calls();
    const size_t second = servers_[1].calls();
    const auto gather = Start(buffers_);
    const auto primary = servers_[0].Await(first);
    const auto hedge = servers_[1].Await(second);
    const auto answer = [](const ScriptedServer::CallPtr& call) {
      for (size_t i = 0; i < call->row_count(); ++i) call->Write(i, i + 1);
      call->End(absl::OkStatus());
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] { answer(primary); });
    threads.emplace_back([&] { answer(hedge); });
    if (round % 4 == 0) threads.emplace_back([&] { gather->Cancel(); });
    const absl::Status status = gather->Wait();
    if (status.ok()) {
      EXPECT_TRUE(buffers_.Right());
    } else {
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
    }
    // Nobody writes from here on.
    buffers_.Poison();
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(buffers_.Poisoned());
    gather->WaitUntilTold();
  }
}

}  // namespace
}  // namespace engram

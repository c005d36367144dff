#include "engram_client/rpc/gather_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "engram_client/routing/health_policy.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/scripted_server.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

absl::Time Later() { return absl::Now() + absl::Seconds(60); }

// Gathers of rows of layer 1, which is all that there is; partitions have 16.
class GatherOperationTest : public ::testing::Test {
 protected:
  static constexpr size_t kServers = 3;

  GatherOperationTest() {
    info_.version = "t";
    info_.partition_rows = 16;
    info_.row_format.width = FakeTable::kWidth;
    info_.row_format.block_size = FakeTable::kWidth;
    info_.layers = {{LayerId{1}, 1000, 63}};
    Watch({.max_hedge_buffer_bytes = 1 << 20,
           .times = {.first_hedge_delay = absl::Milliseconds(2)}});
    environment_.table = &info_;
    environment_.routing = &routing_;
    environment_.policy = &policy_;
    environment_.timers = &timers_;
    environment_.transports = &transports_;
    for (ServerIndex i = 0; i < kServers; ++i) {
      transports_.Open(i, /*generation=*/0, &servers_[i]);
    }
    environment_.max_rows_per_call = 1000;
    environment_.server_problems = [] { return std::string(); };
    environment_.on_ending = [] {};
    environment_.on_finished = [](GatherOperation*) {};
  }
  ~GatherOperationTest() override {
    gather_.reset();
    for (auto& server : servers_) server.CancelRest();
    timers_.Stop();
  }

  void Watch(const CallMonitor::Options& options) {
    environment_.monitor = std::make_shared<CallMonitor>(kServers, options);
  }
  void Announce(ServerIndex server, const std::vector<uint32_t>& partitions) {
    ServerRoute route;
    route.name = std::string(1, static_cast<char>('a' + server));
    route.address = "x:" + std::to_string(server);
    route.held.emplace_back(63);
    for (const uint32_t p : partitions) route.held[0].Set(p);
    routing_.Announce(server, route);
  }
  // Makes the policy take others.
  void LoadServer(ServerIndex server) {
    routing_.snapshot()->load(server)->rows_in_flight += 1000000;
  }
  // Server 0 is asked for partitions 0 and 1; 1 and 2 have one of them each.
  void AnnounceOneWithTwoPartners() {
    Announce(0, {0, 1});
    Announce(1, {0});
    Announce(2, {1});
    LoadServer(1);
    LoadServer(2);
  }

  std::shared_ptr<GatherOperation> Start(GatherBuffers& buffers,
                                         absl::Time deadline = Later()) {
    gather_ = std::make_shared<GatherOperation>(
        environment_,
        std::vector<LayerGather>{
            {LayerId{1}, buffers.ids[0], absl::MakeSpan(buffers.out[0])}},
        deadline, nullptr);
    gather_->Start();
    return gather_;
  }
  TableClient::Stats stats() const { return environment_.monitor->stats(); }
  double Hedges(HedgeEnd end) const {
    return environment_.monitor->metrics().hedges(end).Value();
  }
  double Ended(CallOutcome outcome) const {
    return environment_.monitor->metrics().ended(outcome).Value();
  }
  static void AwaitCancel(const ScriptedServer::CallPtr& call) {
    while (!call->cancelled()) std::this_thread::yield();
  }
  void AwaitRefusedHedge() const {
    while (stats().refused_hedges == 0) std::this_thread::yield();
  }

  TableInfo info_;
  TimerQueue timers_;
  RoutingTable routing_{kServers, [] {}};
  FewestRowsPolicy policy_;
  ScriptedServer servers_[kServers];
  TransportSlots transports_{kServers};
  GatherEnvironment environment_;
  std::shared_ptr<GatherOperation> gather_;
};

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
  while (servers_[0].calls() + servers_[1].calls() < 3) {
    std::this_thread::yield();
  }
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

TEST_F(GatherOperationTest, ACorruptReplyIsAskedForElsewhere) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  const auto corrupt = servers_[0].Await(0);
  corrupt->WriteRubbish();
  corrupt->End(absl::DataLossError("CRC32C"));
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(stats().corrupt_replies, 1u);
}

TEST_F(GatherOperationTest, WhereNobodyElseHasTheRowsAFaultStays) {
  Announce(0, {0});
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  for (size_t i = 0; i < kMaxFaults; ++i) {
    EXPECT_FALSE(gather->ended());
    servers_[0].Await(i)->End(absl::DataLossError("CRC32C"));
  }
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("table t, layer 1 partition 0 from server a at x:0"));
  EXPECT_EQ(stats().retries, kMaxFaults - 1);
}

// Whoever is asked just before the deadline is not to blame for it.
TEST_F(GatherOperationTest, ACallThatEndsAtTheDeadlineWasNotSlowByThat) {
  Watch({.times = {.first_hedge_delay = absl::Hours(1)}});
  Announce(0, {0});
  Announce(1, {1});
  GatherBuffers buffers({3});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
  const auto told = std::make_shared<Notification>();
  timers_.Post([told] { told->Wait(); });
  const auto gather = Start(buffers, deadline);
  while (absl::Now() < deadline + absl::Milliseconds(1)) {
    std::this_thread::yield();
  }
  servers_[0].Await(0)->End(absl::DeadlineExceededError("no reply"));
  EXPECT_EQ(Ended(CallOutcome::kTimedOut), 0);
  EXPECT_EQ(Ended(CallOutcome::kCancelled), 1);
  told->Notify();
  EXPECT_TRUE(absl::IsDeadlineExceeded(gather->Wait()));
}

TEST_F(GatherOperationTest, ADeadlineThatPassesTooEarlyIsAFault) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[0].Await(0)->End(absl::DeadlineExceededError("says the server"));
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_EQ(Ended(CallOutcome::kTimedOut), 1);
}

// Of all gathers, not only of those that it refused.
TEST_F(GatherOperationTest,
       AServerThatIsOverloadedIsLeftAloneForAsLongAsItSays) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  HealthPolicy policy(&environment_.monitor->health(), &policy_);
  environment_.policy = &policy;
  GatherBuffers refused({3});
  const auto first = Start(refused);
  servers_[0].Await(0)->End(WithRetryAfter(
      MakeError(ErrorReason::kOverloaded, "full"), absl::Seconds(30)));
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(first->Wait().ok());
  GatherBuffers meanwhile({4});
  const auto second = Start(meanwhile);
  servers_[1].Await(1)->Answer();
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_EQ(servers_[0].calls(), 1u);
}

TEST_F(GatherOperationTest, WithoutTokensRetriesWaitButCome) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  Watch({.budget = {.share = 0, .burst = 0}});
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  const absl::Time failed = absl::Now();
  servers_[0].Await(0)->End(absl::UnavailableError("reset"));
  const auto retry = servers_[1].Await(0);
  EXPECT_GE(absl::Now(), failed + absl::Milliseconds(5));
  retry->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_EQ(stats().held_retries, 1u);
  EXPECT_EQ(stats().retries, 1u);
}

// Its routes are still there when its transport is not.
TEST_F(GatherOperationTest, ACallToAServerThatHasLeftGoesElsewhere) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  transports_.Close(0);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(servers_[0].calls(), 0u);
  EXPECT_EQ(stats().failed_calls, 0u);
}

TEST_F(GatherOperationTest, OnlyAServerThatHasLeftHasTheRows) {
  Announce(0, {0});
  transports_.Close(0);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers, absl::Now() + absl::Milliseconds(100));
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server a at x:0: the server has left"));
}

// The timer thread is late, so that the routing changes between the deadline
// and the end.
TEST_F(GatherOperationTest, NothingIsAskedForAfterTheDeadline) {
  Notification deadline_passed;
  timers_.Post([&] { deadline_passed.Wait(); });
  GatherBuffers buffers({3});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
  const auto gather = Start(buffers, deadline);
  Announce(0, {0});
  Announce(1, {0});
  while (absl::Now() < deadline + absl::Milliseconds(1)) {
    std::this_thread::yield();
  }
  gather->OnRoutingChange();
  EXPECT_EQ(servers_[0].calls() + servers_[1].calls(), 0u);
  deadline_passed.Notify();
  EXPECT_TRUE(absl::IsDeadlineExceeded(gather->Wait()));
}

// The thread that starts calls is stuck in the first of them: the others have
// not started when they are beaten.
TEST_F(GatherOperationTest,
       CallsThatWereBeatenBeforeTheyStartedLeaveTheirSlots) {
  Announce(0, {0});
  Announce(1, {1});
  Announce(2, {1});
  LoadServer(2);
  LoadServer(2);
  environment_.max_rows_per_call = 1;
  constexpr uint32_t kSlots = GatherQueue::kMaxCallsPerServer;
  std::vector<RowId> rows = {0, 32};  // nobody has row 32
  for (RowId row = 16; row < 16 + kSlots; ++row) rows.push_back(row);
  GatherBuffers buffers(rows);
  Notification go_on;
  servers_[0].on_gather = [&] { go_on.Wait(); };
  std::thread caller([&] { Start(buffers); });
  const auto first = servers_[0].Await(0);
  const std::shared_ptr<GatherOperation> gather = gather_;
  while (servers_[2].calls() < kSlots) gather->OnRoutingChange();
  for (size_t i = 0; i < kSlots; ++i) servers_[2].Await(i)->Answer();
  go_on.Notify();
  caller.join();
  first->Answer();
  EXPECT_EQ(servers_[1].calls(), 0u);
  Announce(1, {1, 2});
  gather->OnRoutingChange();
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
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
    while (!writing) std::this_thread::yield();
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

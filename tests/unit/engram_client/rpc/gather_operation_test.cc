#include "engram_client/rpc/gather_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/gather_operation_fixture.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

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
  YieldUntil([&] { return absl::Now() >= deadline + absl::Milliseconds(1); });
  servers_[0].Await(0)->End(absl::DeadlineExceededError("no reply"));
  EXPECT_EQ(Ended(CallOutcome::kTimedOut), 0);
  EXPECT_EQ(Ended(CallOutcome::kCancelled), 1);
  told->Notify();
  EXPECT_TRUE(absl::IsDeadlineExceeded(gather->Wait()));
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
  const auto deadline_passed = std::make_shared<Notification>();
  timers_.Post([deadline_passed] { deadline_passed->Wait(); });
  GatherBuffers buffers({3});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
  const auto gather = Start(buffers, deadline);
  Announce(0, {0});
  Announce(1, {0});
  YieldUntil([&] { return absl::Now() >= deadline + absl::Milliseconds(1); });
  gather->OnRoutingChange();
  EXPECT_EQ(servers_[0].calls() + servers_[1].calls(), 0u);
  deadline_passed->Notify();
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
  YieldUntil([&] {
    gather->OnRoutingChange();
    return servers_[2].calls() >= kSlots;
  });
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

}  // namespace
}  // namespace engram

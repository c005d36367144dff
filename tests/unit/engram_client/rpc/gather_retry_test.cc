#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/wire/error_detail.h"
#include "engram_client/routing/health_policy.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/gather_operation_fixture.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

const absl::Status& ReadError() {
  static const auto* status = new absl::Status(absl::UnavailableError(
      "server a could not read 1 rows of layer 1 partition 0 of table version "
      "t: DATA_LOSS: /store/0.rows: page 3"));
  return *status;
}

TEST_F(GatherOperationTest, RowsThatAServerCannotReadAreAskedForElsewhere) {
  Announce(0, {0});
  Announce(1, {0});
  LoadServer(1);
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[0].Await(0)->End(ReadError());
  servers_[1].Await(0)->Answer();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(stats().corrupt_replies, 0u);  // none came
}

// Then the server gives its damaged partition up, and nobody else has it.
TEST_F(GatherOperationTest, WhyRowsCouldNotBeReadIsSaidAtTheEnd) {
  Announce(0, {0});
  GatherBuffers buffers({3});
  const auto gather = Start(buffers, absl::Now() + absl::Seconds(5));
  servers_[0].Await(0)->End(ReadError());
  servers_[0].Await(1)->End(MakeError(ErrorReason::kPartitionNotHere,
                                      "server a does not hold partition 0"));
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(std::string(ReadError().message())));
}

TEST_F(GatherOperationTest, WhatFailedFirstIsSaidWithTheLastFault) {
  Announce(0, {0});
  GatherBuffers buffers({3});
  const auto gather = Start(buffers);
  servers_[0].Await(0)->End(ReadError());
  for (size_t i = 1; i <= kMaxFaults; ++i) {
    servers_[0].Await(i)->End(absl::DataLossError("CRC32C"));
  }
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("CRC32C; first failure: UNAVAILABLE: table t, "),
                    HasSubstr(std::string(ReadError().message()))));
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

}  // namespace
}  // namespace engram

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RetryTest : public FakeCluster {
 protected:
  // Both hold everything; the first `failures` gathers that arrive anywhere
  // fail with `status`.
  void ConnectToTwoThatFail(int failures, const absl::Status& status) {
    StartServers(2);
    left_ = failures;
    for (size_t i = 0; i < 2; ++i) {
      server(i).HoldAll();
      server(i).OnGather([this, status](const FakeTableServer::Gather&) {
        return left_-- > 0 ? status : absl::OkStatus();
      });
    }
    Connect();
    ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  }

  std::atomic<int> left_{0};
};

TEST_F(RetryTest, AsksAnotherServerWhenOneIsUnavailable) {
  ConnectToTwoThatFail(1, absl::UnavailableError("reset"));
  GatherBuffers buffers({1, 2});
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(gather->stats().calls, 2u);
}

TEST_F(RetryTest, KeepsOnWithinTheDeadline) {
  for (const absl::Status& status :
       {MakeError(ErrorReason::kDraining, "draining"),
        MakeError(ErrorReason::kNotReady, "loading"),
        absl::CancelledError("stopping"),
        WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                       absl::Milliseconds(1))}) {
    client_.reset();
    servers_.clear();
    addresses_.clear();
    ConnectToTwoThatFail(5, status);
    GatherBuffers buffers({1, 2});
    EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok()) << status;
    EXPECT_TRUE(buffers.Right());
  }
}

TEST_F(RetryTest, AReplicaAnswersWhereAServerHasAnotherVersionNow) {
  ConnectToTwoThatFail(1, MakeError(ErrorReason::kWrongTable, "v2 here"));
  GatherBuffers buffers({1, 2});
  const absl::Status status = client_->Gather(buffers.Layers(), Later());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(buffers.Right());
}

TEST_F(RetryTest, AsksAnotherServerAtOnceWhenOneIsOverloaded) {
  ConnectToTwoThatFail(
      1, WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                        absl::Hours(1)));
  GatherBuffers buffers({1});
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_TRUE(buffers.Right());
}

// Neither the calls that failed nor those that stand in line are sent before.
TEST_F(RetryTest, WaitsAsLongAsTheOnlyServerSays) {
  constexpr uint64_t kFirst = GatherQueue::kMaxCallsPerServer;
  StartServers(1);
  server(0).HoldAll();
  uint64_t arrived = 0;  // used on the server's thread only
  absl::Time first_failed;
  absl::Duration waited;
  server(0).OnGather([&](const FakeTableServer::Gather&) {
    ++arrived;
    if (arrived == 1) first_failed = absl::Now();
    if (arrived <= kFirst) {
      return WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                            absl::Milliseconds(150));
    }
    if (arrived == kFirst + 1) waited = absl::Now() - first_failed;
    return absl::OkStatus();
  });
  Connect({.max_rows_per_call = 1});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  auto buffers = GatherBuffers::Random(20, 1);
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_GE(waited, absl::Milliseconds(149));
}

TEST_F(RetryTest, CallsInLineLeaveAServerThatDrains) {
  constexpr uint64_t kFirst = GatherQueue::kMaxCallsPerServer;
  StartServers(2);
  server(0).HoldAll();
  server(0).SwallowGathers(true);
  Connect({.max_rows_per_call = 1});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  std::vector<RowId> rows(20);
  std::iota(rows.begin(), rows.end(), 0);
  GatherBuffers buffers(rows);
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  EXPECT_EQ(server(0).gathers_started(), kFirst);
  server(1).HoldAll();
  server(0).Drain();
  const absl::Time give_up = Later();
  while (server(1).gathers_started() < rows.size() - kFirst) {
    ASSERT_LT(absl::Now(), give_up);
    std::this_thread::yield();
  }
  server(0).ReleaseSwallowed();
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(server(0).gathers_started(), kFirst);
}

TEST_F(RetryTest, AnotherErrorEndsTheGatherAndSaysWhere) {
  ConnectToTwoThatFail(1, absl::PermissionDeniedError("rotten"));
  GatherBuffers buffers({}, {40, 999});
  const absl::Status status = client_->Gather(buffers.Layers(), Later());
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("table table-a"),
            HasSubstr("layer 14 partition 2 and 1 more"), HasSubstr("server s"),
            HasSubstr("at fake:"), HasSubstr("rotten")));
}

TEST_F(RetryTest, AFaultOfOneServerIsMendedByAnother) {
  for (const absl::Status& status :
       {absl::DataLossError("bits"), absl::InternalError("bug"),
        absl::UnknownError("?"), MakeError(ErrorReason::kRowOutOfRange, "?")}) {
    client_.reset();
    servers_.clear();
    addresses_.clear();
    ConnectToTwoThatFail(1, status);
    GatherBuffers buffers({1, 2});
    EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok()) << status;
    EXPECT_TRUE(buffers.Right());
    EXPECT_EQ(client_->stats().retries, 1u);
  }
}

TEST_F(RetryTest, OneFailedCallEndsTheOthers) {
  StartServers(2);
  server(0).Add(LayerId{1}, {0});
  server(1).Add(LayerId{1}, {1});
  server(0).SwallowGathers(true);
  server(1).OnGather([](const FakeTableServer::Gather&) {
    return absl::InternalError("broken");
  });
  Connect();
  GatherBuffers buffers({0, 16});
  EXPECT_EQ(client_->Gather(buffers.Layers(), Later()).code(),
            absl::StatusCode::kInternal);
  client_.reset();  // waits for what was cancelled
  EXPECT_EQ(server(0).gathers_open(), 0u);
}

TEST_F(RetryTest, APartitionThatMovedIsAskedForElsewhere) {
  StartServers(2);
  server(0).HoldAll();
  server(1).HoldAll();
  Connect({.max_rows_per_call = 100000});
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  // The client is not told: only the answer says so.
  server(0).Remove(LayerId{1}, {3}, /*told=*/false);
  server(1).Remove(LayerId{1}, {4}, /*told=*/false);
  for (uint32_t seed = 0; seed < 10; ++seed) {
    auto buffers = GatherBuffers::Random(500, seed);
    ASSERT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
    ASSERT_TRUE(buffers.Right());
  }
}

TEST_F(RetryTest, WaitsForAPartitionThatNobodyHolds) {
  StartServers(2);
  server(0).HoldAll();
  server(0).Remove(LayerId{14}, {5});
  Connect();
  GatherBuffers buffers({1}, {5 * 16});
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  EXPECT_FALSE(gather->done());
  server(1).Add(LayerId{14}, {5});
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
  EXPECT_EQ(server(1).gathers_started(), 1u);
}

TEST_F(RetryTest, ADrainingServerIsAskedOnlyForWhatNobodyElseHas) {
  StartServers(2);
  server(0).HoldAll();
  server(0).Remove(LayerId{1}, {3});
  server(1).Add(LayerId{1}, {0, 1, 2, 3});
  server(0).Drain();
  Connect();
  // Which takes both servers.
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  GatherBuffers with_choice({0, 20, 40});
  ASSERT_TRUE(client_->Gather(with_choice.Layers(), Later()).ok());
  EXPECT_EQ(server(0).gathers_started(), 0u);
  GatherBuffers without({}, {20});
  ASSERT_TRUE(client_->Gather(without.Layers(), Later()).ok());
  EXPECT_EQ(server(0).gathers_started(), 1u);
}

TEST_F(RetryTest, ARestartedServerGoesOn) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  GatherBuffers buffers({1, 2});
  ASSERT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  server(0).SetUp(false);
  buffers.Poison();
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  server(0).Restart(/*instance_id=*/77);
  EXPECT_TRUE(gather->Wait().ok()) << gather->Wait();
  EXPECT_TRUE(buffers.Right());
}

TEST_F(RetryTest, ServersThatComeAndGoLoseNothing) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  Connect({.max_rows_per_call = 32});
  std::atomic<bool> stop{false};
  std::thread chaos([&] {
    for (uint64_t i = 0; !stop; ++i) {
      FakeTableServer& victim = server(i % 3);
      victim.SetUp(false);
      victim.Restart(100 + i);
      victim.Remove(LayerId{1}, {static_cast<uint32_t>(i % 60)});
      victim.Add(LayerId{1}, {static_cast<uint32_t>(i % 60)});
      absl::SleepFor(absl::Milliseconds(2));
    }
  });
  for (uint32_t seed = 0; seed < 50; ++seed) {
    auto buffers = GatherBuffers::Random(200, seed);
    const absl::Status status = client_->Gather(buffers.Layers(), Later());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(buffers.Right());
  }
  stop = true;
  chaos.join();
}

}  // namespace
}  // namespace engram

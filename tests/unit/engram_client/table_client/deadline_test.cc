#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DeadlineTest : public FakeCluster {
 protected:
  // Ends at its deadline: not before (but for what the clocks differ), and not
  // long after (other work on the machine gets a generous share).
  absl::Status GatherFor(GatherBuffers& buffers, absl::Duration time) {
    const absl::Time deadline = In(time);
    const absl::Status status = client_->Gather(buffers.Layers(), deadline);
    EXPECT_GE(absl::Now(), deadline - absl::Milliseconds(1));
    EXPECT_LE(absl::Now(), deadline + absl::Seconds(10));
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    return status;
  }
};

TEST_F(DeadlineTest, HoldsAgainstAServerThatSwallowsCalls) {
  StartServers(1);
  server(0).HoldAll();
  server(0).SwallowGathers(true);
  Connect();
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  GatherBuffers buffers({16, 900});
  const absl::Status status = GatherFor(buffers, absl::Milliseconds(300));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("table table-a"),
                    HasSubstr("layer 1 partition 1 and 1 more"),
                    HasSubstr("no answer from server s0 at fake:1")));
  // The call was given up as well.
  client_.reset();
  EXPECT_EQ(server(0).gathers_open(), 0u);
  EXPECT_EQ(server(0).gathers_cancelled(), 1u);
  server(0).ReleaseSwallowed();
  EXPECT_TRUE(buffers.Poisoned());
}

TEST_F(DeadlineTest, NamesAPartitionThatNobodyHolds) {
  StartServers(2);
  server(0).HoldAll();
  server(0).Remove(LayerId{14}, {2, 3});
  server(1).SetUp(false);
  Connect();
  GatherBuffers known({1});  // once it is answered, the holes are known
  ASSERT_TRUE(client_->Gather(known.Layers(), Later()).ok());
  while (client_->servers()[1].error.empty()) std::this_thread::yield();
  GatherBuffers buffers({}, {40, 50});
  const absl::Status status = GatherFor(buffers, absl::Milliseconds(300));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer 14 partition 2 and 1 more"),
                    HasSubstr("no ready server"),
                    HasSubstr("fake:2: UNAVAILABLE: connection refused")));
}

TEST_F(DeadlineTest, NamesTheLastFailureThatWasTriedAgain) {
  StartServers(1);
  server(0).HoldAll();
  server(0).OnGather([](const FakeTableServer::Gather&) {
    return MakeError(ErrorReason::kOverloaded, "queue full");
  });
  Connect();
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  GatherBuffers buffers({1});
  const absl::Status status = GatherFor(buffers, absl::Seconds(1));
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue full"));
  // Bounded: the delay between calls grows.
  EXPECT_LE(server(0).gathers_started(), 15u);
}

TEST_F(DeadlineTest, PassedAlreadyMeansNoCall) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  GatherBuffers buffers({1});
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(client_->Gather(buffers.Layers(), absl::Now())));
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client_->Gather(buffers.Layers(), absl::InfinitePast())));
  EXPECT_EQ(server(0).gathers_started(), 0u);
}

TEST_F(DeadlineTest, IsSentToTheServer) {
  StartServers(1);
  server(0).HoldAll();
  absl::Time seen;
  server(0).OnGather([&](const FakeTableServer::Gather& gather) {
    seen = gather.deadline;
    return absl::OkStatus();
  });
  Connect();
  GatherBuffers buffers({1});
  const absl::Time deadline = Later();
  ASSERT_TRUE(client_->Gather(buffers.Layers(), deadline).ok());
  EXPECT_EQ(seen, deadline);
}

}  // namespace
}  // namespace engram

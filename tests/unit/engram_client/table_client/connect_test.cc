#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConnectTest : public FakeCluster {
 protected:
  void AwaitErrorOf(size_t server, const std::string& text) {
    const absl::Time give_up = Later();
    while (client_->servers()[server].error.find(text) == std::string::npos) {
      ASSERT_LT(absl::Now(), give_up) << client_->servers()[server].error;
      std::this_thread::yield();
    }
  }
};

TEST_F(ConnectTest, LearnsTheTable) {
  StartServers(2);
  Connect();
  EXPECT_EQ(client_->table().version, "table-a");
  EXPECT_EQ(client_->table().layers[0].row_count, 1000u);
  EXPECT_EQ(client_->table().config.head_dim, 32u);
}

TEST_F(ConnectTest, RefusesNoAddressesAndOneTwice) {
  EXPECT_TRUE(absl::IsInvalidArgument(TryConnect({}).status()));
  StartServers(2);
  addresses_[1] = addresses_[0];
  const absl::Status status = TryConnect({}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("fake:1"));
}

TEST_F(ConnectTest, RefusesServersOfDifferentTables) {
  AddServer("a", {.version = "v1"}, 1);
  AddServer("b", {.version = "v2"}, 2);
  const absl::Status status = TryConnect({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("v1"), HasSubstr("v2"), HasSubstr("fake:1"),
                    HasSubstr("fake:2")));
}

TEST_F(ConnectTest, RefusesTwoServersOfOneName) {
  AddServer("twin", {}, 1);
  AddServer("twin", {}, 2);
  const absl::Status status = TryConnect({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("twin"), HasSubstr("fake:1"), HasSubstr("fake:2")));
}

TEST_F(ConnectTest, TakesOneServerAtTwoAddresses) {
  AddServer("twin", {}, 1).HoldAll();
  AddServer("twin", {}, 1).HoldAll();
  Connect();
  GatherBuffers buffers({1, 2, 3});
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
}

TEST_F(ConnectTest, RefusesAnUnexpectedVersion) {
  StartServers(1);
  const absl::Status status = TryConnect({.expected_version = "x"}).status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kWrongTable);
  Connect({.expected_version = "table-a"});
}

TEST_F(ConnectTest, AServerOfAnotherVersionIsLeftOutUntilItHasTheExpected) {
  AddServer("old", {.version = "v1"}, 1).HoldAll();
  AddServer("new", {.version = "v2"}, 2).HoldAll();
  Connect({.expected_version = "v2"});
  EXPECT_EQ(client_->table().version, "v2");
  AwaitErrorOf(0, "v1");
  EXPECT_THAT(client_->servers()[0].error, HasSubstr("expected v2"));
  GatherBuffers buffers({1, 2, 3});
  EXPECT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  EXPECT_EQ(server(0).gathers_started(), 0u);
}

TEST_F(ConnectTest, WaitsForTheExpectedVersionWhereOthersHaveAnswered) {
  AddServer("old", {.version = "v1"}, 1);
  AddServer("new", {.version = "v2"}, 2).SetUp(false);
  const absl::Status status = TryConnect({.expected_version = "v2",
                                          .connect_timeout = absl::Seconds(1)})
                                  .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("table version v2"), HasSubstr("table v1"),
                    HasSubstr("connection refused")));
  std::thread late([&] { server(1).SetUp(true); });
  Connect({.expected_version = "v2"});
  late.join();
}

TEST_F(ConnectTest, SaysWhyNobodyAnswered) {
  StartServers(1);
  server(0).SetUp(false);
  const absl::Status status =
      TryConnect({.connect_timeout = absl::Seconds(1)}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("fake:1"), HasSubstr("connection refused")));
}

TEST_F(ConnectTest, WaitsForAServerThatComesLate) {
  StartServers(1);
  server(0).SetUp(false);
  std::thread late([&] { server(0).SetUp(true); });
  Connect();
  late.join();
}

TEST_F(ConnectTest, AServerThatComesWithAnotherTableIsNotUsed) {
  AddServer("a", {.version = "v1"}, 1).HoldAll();
  AddServer("b", {.version = "v2"}, 2).HoldAll();
  server(1).SetUp(false);
  Connect();
  server(1).SetUp(true);
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  AwaitErrorOf(1, "v2");
  for (uint32_t i = 0; i < 20; ++i) {
    GatherBuffers buffers({i});
    ASSERT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  }
  EXPECT_EQ(server(1).gathers_started(), 0u);
}

TEST_F(ConnectTest, TellsTheStateOfEachServer) {
  StartServers(2);
  server(0).HoldAll();
  server(1).SetUp(false);
  Connect();
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  const auto servers = client_->servers();
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_EQ(servers[0].name, "s0");
  EXPECT_TRUE(servers[0].connected);
  EXPECT_EQ(servers[0].partitions_held, 2 * FakeTable{}.partition_count());
  EXPECT_EQ(servers[1].address, "fake:2");
  EXPECT_EQ(servers[1].name, "");
  EXPECT_FALSE(servers[1].connected);
}

TEST_F(ConnectTest, CheckCompleteFollowsTheServers) {
  StartServers(1);
  server(0).HoldAll();
  Connect();
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  EXPECT_TRUE(client_->CheckComplete().ok());
  server(0).SetUp(false);
  absl::Status status;
  for (const absl::Time give_up = Later();
       status.ok() && absl::Now() < give_up;) {
    status = client_->CheckComplete();
    std::this_thread::yield();
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no server"));
  server(0).SetUp(true);
  ASSERT_TRUE(client_->WaitUntilComplete(Later()).ok());
  EXPECT_TRUE(client_->CheckComplete().ok());
}

TEST_F(ConnectTest, WaitUntilCompleteNamesTheFirstHole) {
  StartServers(1);
  server(0).HoldAll();
  server(0).Remove(LayerId{14}, {7, 9});
  Connect();
  GatherBuffers buffers({1});  // once it is answered, the holes are known
  ASSERT_TRUE(client_->Gather(buffers.Layers(), Later()).ok());
  const absl::Status status =
      client_->WaitUntilComplete(In(absl::Milliseconds(20)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("2 partitions"), HasSubstr("layer 14 partition 7")));
  server(0).Add(LayerId{14}, {7, 9});
  EXPECT_TRUE(client_->WaitUntilComplete(Later()).ok());
}

}  // namespace
}  // namespace engram

#include "engram_client/rpc/server_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engram_client/rpc/fake_table_server.h"
#include "tests/unit/engram_client/rpc/connection_fixture.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

class ServerConnectionTest : public ConnectionFixture {
 protected:
  static constexpr uint64_t kGeneration = 7;

  ServerConnectionTest() { transports_.Open(0, kGeneration, transport_.get()); }
  ~ServerConnectionTest() override {
    connection_->Stop();
    transports_.Close(0);
    transport_.reset();
  }

  bool Holds(size_t layer, uint32_t partition) {
    return !routing_.snapshot()->HoldersOf(layer, partition).ready.empty();
  }

  FakeTableServer server_{"a", {}};
  TimerQueue timers_;
  RoutingTable routing_{1, [this] { Signal(); }};
  TableIdentity identity_{{"one:1"}, ""};
  std::unique_ptr<TableTransport> transport_ = server_.Connect();
  TransportSlots transports_{1};
  const std::shared_ptr<ServerConnection> connection_ =
      std::make_shared<ServerConnection>(
          /*index=*/0, kGeneration, "one:1",
          ServerConnection::Environment{&transports_, &routing_, &identity_,
                                        &timers_, [this] { Signal(); }});
};

TEST_F(ServerConnectionTest, AnnouncesSnapshotAndChanges) {
  server_.Add(LayerId{1}, {3});
  connection_->Start();
  ASSERT_TRUE(Eventually([&] { return Holds(0, 3); }));
  server_.Add(LayerId{14}, {5, 6});
  ASSERT_TRUE(Eventually([&] { return Holds(1, 6); }));
  EXPECT_EQ(connection_->state().partitions_held, 3u);
  server_.Remove(LayerId{1}, {3});
  ASSERT_TRUE(Eventually([&] { return !Holds(0, 3); }));
  EXPECT_TRUE(Holds(1, 5));
  const auto state = connection_->state();
  EXPECT_TRUE(state.connected);
  EXPECT_EQ(state.name, "a");
  EXPECT_EQ(state.address, "one:1");
  EXPECT_EQ(state.error, "");
}

TEST_F(ServerConnectionTest, ConnectsWhatGathersUseEachTimeTheServerComes) {
  server_.HoldAll();
  connection_->Start();
  ASSERT_TRUE(Eventually([&] { return Holds(0, 0); }));
  EXPECT_EQ(server_.warm_ups(), 1u);
  server_.Restart(/*instance_id=*/99);
  ASSERT_TRUE(
      Eventually([&] { return server_.warm_ups() == 2 && Holds(0, 0); }));
}

TEST_F(ServerConnectionTest, TellsThatTheServerDrains) {
  server_.Add(LayerId{1}, {3});
  connection_->Start();
  server_.Drain();
  ASSERT_TRUE(Eventually(
      [&] { return !routing_.snapshot()->HoldersOf(0, 3).draining.empty(); }));
  EXPECT_TRUE(connection_->state().draining);
}

TEST_F(ServerConnectionTest, KeepsTryingAServerThatIsDown) {
  server_.SetUp(false);
  server_.HoldAll();
  connection_->Start();
  // The next answer comes after this one's error was noted.
  ASSERT_TRUE(Eventually([&] { return !connection_->state().error.empty(); }));
  EXPECT_THAT(connection_->state().error, HasSubstr("connection refused"));
  EXPECT_FALSE(connection_->state().connected);
  server_.SetUp(true);
  ASSERT_TRUE(Eventually([&] { return Holds(0, 0); }));
  EXPECT_EQ(connection_->state().error, "");
}

TEST_F(ServerConnectionTest, ALostServerIsWithdrawnAndARestartTakenBack) {
  server_.HoldAll();
  connection_->Start();
  ASSERT_TRUE(Eventually([&] { return Holds(0, 0); }));
  server_.SetUp(false);
  ASSERT_TRUE(Eventually([&] { return !Holds(0, 0); }));
  server_.Restart(/*instance_id=*/99);
  ASSERT_TRUE(Eventually([&] { return Holds(0, 0); }));
}

TEST_F(ServerConnectionTest, ALostChangeBringsANewSnapshot) {
  server_.Add(LayerId{1}, {3});
  connection_->Start();
  ASSERT_TRUE(Eventually([&] { return Holds(0, 3); }));
  v1::WatchPartitionsResponse gap;
  gap.set_epoch(1000);
  gap.mutable_delta();
  server_.SendToWatchers(gap);
  ASSERT_TRUE(Eventually([&] { return !Holds(0, 3); }));
  ASSERT_TRUE(Eventually([&] { return Holds(0, 3); }));
}

TEST_F(ServerConnectionTest, RefusesPartitionsThatTheTableDoesNotHave) {
  server_.Add(LayerId{1}, {3});
  connection_->Start();
  ASSERT_TRUE(Eventually([&] { return Holds(0, 3); }));
  v1::WatchPartitionsResponse bad;
  bad.set_epoch(3);
  auto* change = bad.mutable_delta()->add_added();
  change->set_layer_id(1);
  change->add_partitions(1 << 30);
  server_.SendToWatchers(bad);
  ASSERT_TRUE(Eventually([&] { return !Holds(0, 3); }));
  ASSERT_TRUE(Eventually([&] { return Holds(0, 3); }));
}

}  // namespace
}  // namespace engram

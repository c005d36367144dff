#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/wire/error_detail.h"
#include "tests/unit/engram_client/table_client/fake_cluster.h"
#include "tests/unit/engram_client/table_client/member_double.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MembersTest : public FakeCluster {
 protected:
  MemberWatcher::Observation Members(const std::vector<size_t>& servers) const {
    std::vector<Member> members;
    for (const size_t i : servers) {
      members.push_back({"s" + std::to_string(i), addresses_[i]});
    }
    return members;
  }
  // A client that first hears of these, and then of what Tell says.
  void ConnectTo(const std::vector<size_t>& servers,
                 TableClient::Options options = {}) {
    for (const size_t i : servers) options.addresses.push_back(addresses_[i]);
    auto client = TableClientImpl::Create(std::move(options),
                                          [this](const std::string& address) {
                                            ++connects_;
                                            return Factory()(address);
                                          });
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void Tell(const MemberWatcher::Observation& members) {
    static_cast<TableClientImpl&>(*client_).OnMembers(members);
  }
  void Tell(const std::vector<size_t>& servers) { Tell(Members(servers)); }

  // A client that looks for members itself.
  absl::StatusOr<std::unique_ptr<TableClient>> TryConnectByMembers(
      TableClient::Options options = {}) {
    options.members = "double:";
    return TableClientImpl::Create(std::move(options), Factory(), source_);
  }

  static void Await(const std::function<bool()>& holds) {
    const absl::Time give_up = Later();
    while (!holds()) {
      ASSERT_LT(absl::Now(), give_up);
      std::this_thread::yield();
    }
  }
  TableClient::ServerState StateOf(size_t server) const {
    for (auto& state : client_->servers()) {
      if (state.address == addresses_[server]) return state;
    }
    return {};
  }
  void AwaitConnected(size_t server, bool connected) {
    Await([&] { return StateOf(server).connected == connected; });
  }
  std::vector<std::string> Addresses() const {
    std::vector<std::string> addresses;
    for (const auto& state : client_->servers()) {
      addresses.push_back(state.address);
    }
    return addresses;
  }
  void GatherAll() {
    auto buffers = GatherBuffers::Random(300, 7);
    const absl::Status status = client_->Gather(buffers.Layers(), Later());
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(buffers.Right());
  }

  const std::shared_ptr<MemberDouble> source_ =
      std::make_shared<MemberDouble>();
  int connects_ = 0;
};

TEST_F(MembersTest, AServerThatComesHasWhatAGatherWaitsFor) {
  StartServers(2);
  server(0).Add(LayerId{1}, {0, 1});
  server(1).HoldAll();
  ConnectTo({0});
  auto buffers = GatherBuffers::Random(300, 1);
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  EXPECT_FALSE(gather->done());
  Tell({0, 1});
  const absl::Status status = gather->Wait();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(buffers.Right());
  EXPECT_TRUE(client_->WaitUntilComplete(Later()).ok());
}

TEST_F(MembersTest, WhatAServerThatIsGoneWasAskedForComesFromOthers) {
  StartServers(3);
  server(0).HoldAll();
  server(1).HoldAll();
  server(2).HoldAll();
  server(0).SwallowGathers(true);
  // No hedge comes first; and some calls stand in line.
  ConnectTo({0, 1}, {.max_rows_per_call = 4, .max_hedge_buffer_bytes = 0});
  AwaitConnected(0, true);
  AwaitConnected(1, true);
  std::vector<std::unique_ptr<GatherBuffers>> buffers;
  std::vector<std::unique_ptr<GatherHandle>> gathers;
  for (uint32_t i = 0; i < 10 || server(0).gathers_open() == 0; ++i) {
    ASSERT_LT(i, 100000u);
    buffers.push_back(
        std::make_unique<GatherBuffers>(GatherBuffers::Random(200, i)));
    gathers.push_back(
        client_->Prefetch(buffers.back()->Layers(), Later(), nullptr));
  }
  server(0).SetUp(false);
  AwaitConnected(0, false);
  Tell({1, 2});
  for (size_t i = 0; i < gathers.size(); ++i) {
    const absl::Status status = gathers[i]->Wait();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(buffers[i]->Right());
  }
  EXPECT_EQ(server(0).gathers_open(), 0u);
  EXPECT_THAT(Addresses(), ElementsAre("fake:3", "fake:2"));
}

TEST_F(MembersTest, AListThatLacksServersForOneLookDisturbsNothing) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  ConnectTo({0, 1, 2});
  for (size_t i = 0; i < 3; ++i) AwaitConnected(i, true);
  for (int round = 0; round < 20; ++round) {
    Tell({round % 3 == 0 ? 1U : 0U});
    GatherAll();
    Tell(absl::UnavailableError("no answer"));
    GatherAll();
    Tell({0, 1, 2});
    GatherAll();
  }
  EXPECT_EQ(client_->servers().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(server(i).warm_ups(), 1u);
  EXPECT_EQ(client_->stats().retries, 0u);
}

TEST_F(MembersTest, AServerThatHandsOverIsUsedUntilItIsEmpty) {
  StartServers(2);
  server(0).HoldAll();
  ConnectTo({0});
  AwaitConnected(0, true);
  Tell({1});  // taken out of the list, and has all there is
  GatherAll();
  server(1).HoldAll();
  AwaitConnected(1, true);
  for (uint32_t p = 0; p < FakeTable().partition_count(); ++p) {
    server(0).Remove(LayerId{1}, {p});
    server(0).Remove(LayerId{14}, {p});
  }
  Await([&] { return StateOf(0).partitions_held == 0; });
  Tell({1});
  EXPECT_THAT(Addresses(), ElementsAre("fake:2"));
  GatherAll();
}

TEST_F(MembersTest, AServerThatMovedIsTakenAtItsNewAddress) {
  AddServer("a", {}, 1).HoldAll();
  AddServer("a", {}, 2).HoldAll();
  ConnectTo({0});
  AwaitConnected(0, true);
  server(0).SwallowGathers(true);  // hangs
  auto buffers = GatherBuffers::Random(100, 3);
  const auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
  Tell({1});
  AwaitConnected(1, true);
  Tell({1});
  EXPECT_THAT(Addresses(), ElementsAre("fake:2"));
  EXPECT_TRUE(gather->Wait().ok());
  EXPECT_TRUE(buffers.Right());
}

TEST_F(MembersTest, TheNextServerOfASlotIsNotBlamedForTheOneBefore) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  server(0).OnGather([](const FakeTableServer::Gather&) {
    return absl::InternalError("broken");
  });
  ConnectTo({0, 1});
  AwaitConnected(0, true);
  AwaitConnected(1, true);
  Await([&] {
    GatherAll();
    return client_->stats().servers_ejected == 1;
  });
  server(0).SetUp(false);
  AwaitConnected(0, false);
  Tell({1, 2});
  EXPECT_THAT(Addresses(), ElementsAre("fake:3", "fake:2"));
  EXPECT_EQ(client_->stats().servers_ejected, 0u);
  AwaitConnected(2, true);
  Await([&] {
    GatherAll();
    return server(2).gathers_started() > 5;
  });
}

TEST_F(MembersTest, TellsHowManyServersThereAre) {
  StartServers(3);
  for (size_t i = 0; i < 3; ++i) server(i).HoldAll();
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto metric = [&](const std::string& name) {
    for (const auto& family : registry->Collect()) {
      if (family.name != name) continue;
      return family.metric[0].gauge.value + family.metric[0].counter.value;
    }
    return -1.0;
  };
  ConnectTo({0}, {.max_servers = 2, .metrics = registry});
  EXPECT_EQ(metric("engram_client_servers"), 1);
  EXPECT_EQ(metric("engram_client_servers_limit"), 2);
  Tell({0, 1, 2});
  EXPECT_EQ(metric("engram_client_servers"), 2);
  EXPECT_THAT(Addresses(), ElementsAre("fake:1", "fake:2"));
  Await([&] { return metric("engram_client_servers_connected") == 2; });
  server(1).SetUp(false);
  Await([&] { return metric("engram_client_servers_connected") == 1; });
  Tell(absl::NotFoundError("no file"));
  EXPECT_EQ(metric("engram_client_member_looks_failed_total"), 1);
  EXPECT_EQ(metric("engram_client_servers"), 2);
}

TEST_F(MembersTest, PortsThatOnlyTheServerKnowsAreNoAddresses) {
  StartServers(1);
  server(0).HoldAll();
  ConnectTo({0});
  Tell(std::vector<Member>{
      {"s0", "fake:1"}, {"x", "127.0.0.1:0"}, {"y", "127.0.0.1:0"}});
  EXPECT_THAT(Addresses(), ElementsAre("fake:1"));
}

// ---- Create with members ----

TEST_F(MembersTest, WaitsForTheFirstAnswerAndFollows) {
  StartServers(2);
  server(0).HoldAll();
  server(1).HoldAll();
  std::thread late([&] { source_->Set(Members({0})); });
  auto client = TryConnectByMembers();
  late.join();
  ASSERT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
  GatherAll();
  EXPECT_THAT(Addresses(), ElementsAre("fake:1"));
  source_->Set(Members({0, 1}));
  AwaitConnected(1, true);
}

TEST_F(MembersTest, SaysThatNobodyToldWhoTheServersAre) {
  StartServers(1);
  source_->Set(absl::NotFoundError("/etc/members: no such file"));
  const absl::Status status =
      TryConnectByMembers({.connect_timeout = absl::Milliseconds(300)})
          .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no table server said what it serves"),
                    HasSubstr("members double:"), HasSubstr("no such file")));
}

TEST_F(MembersTest, WaitsForServersOfTheExpectedVersionToBeNamed) {
  AddServer("old", {.version = "v1"}, 1).HoldAll();
  AddServer("new", {.version = "v2"}, 2).HoldAll();
  source_->Set(Members({0}));
  const absl::Status status =
      TryConnectByMembers({.expected_version = "v2",
                           .connect_timeout = absl::Milliseconds(300)})
          .status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kWrongTable) << status;
  std::thread later([&] {
    Await([&] { return source_.use_count() > 1; });
    source_->Set(Members({0, 1}));
  });
  auto client = TryConnectByMembers({.expected_version = "v2"});
  later.join();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->table().version, "v2");
}

TEST_F(MembersTest, RefusesBothAndTooMany) {
  StartServers(2);
  const absl::Status both =
      TryConnect({.members = "file:/etc/members"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(both)) << both;
  EXPECT_THAT(std::string(both.message()),
              AllOf(HasSubstr("fake:1"), HasSubstr("file:/etc/members")));
  const absl::Status many = TryConnect({.max_servers = 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(many)) << many;
  EXPECT_THAT(std::string(many.message()),
              HasSubstr("2 table server addresses, max_servers is 1"));
  for (const size_t max_servers : {size_t{0}, size_t{5000}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        TryConnect({.max_servers = max_servers}).status()));
  }
}

// ---- many changes ----

class ManyChangesTest : public MembersTest {
 protected:
  static constexpr size_t kServers = 6;

  ManyChangesTest() {
    level_ = spdlog::get_level();
    spdlog::set_level(spdlog::level::off);
  }
  ~ManyChangesTest() override { spdlog::set_level(level_); }

  std::vector<size_t> Named() const {
    std::vector<size_t> named;
    for (size_t i = 0; i < kServers; ++i) {
      if (named_[i]) named.push_back(i);
    }
    return named;
  }
  // It is killed and forgotten, or comes again.
  void Toggle(size_t i) {
    named_[i] = !named_[i];
    server(i).SetUp(named_[i]);
    Tell(Named());
  }
  void AwaitNobodyElse() {
    Await([&] {
      Tell(Named());
      return client_->servers().size() == Named().size();
    });
  }
  // Gathers without end; every third is dropped under way.
  void GatherUntil(const std::atomic<bool>& stop, uint32_t seed) {
    for (uint32_t i = 0; !stop; ++i) {
      auto buffers = GatherBuffers::Random(i % 5 == 0 ? 400 : 12, seed + i);
      auto gather = client_->Prefetch(buffers.Layers(), Later(), nullptr);
      if (i % 3 == 0) continue;
      const absl::Status status = gather->Wait();
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(buffers.Right());
      ++gathers_;
    }
  }

  spdlog::level::level_enum level_;
  bool named_[kServers] = {};
  std::atomic<int> gathers_{0};
};

TEST_F(ManyChangesTest, GathersGoOnAndNoSlotIsLost) {
  constexpr int kChanges = 3000;  // half of them are servers that come
  StartServers(kServers);
  for (size_t i = 0; i < kServers; ++i) server(i).HoldAll();
  named_[0] = true;
  ConnectTo({0}, {.max_servers = kServers, .max_rows_per_call = 64});
  std::atomic<bool> stop{false};
  std::vector<std::thread> gatherers;
  for (uint32_t t = 0; t < 3; ++t) {
    gatherers.emplace_back([&, t] { GatherUntil(stop, t * 1000000); });
  }
  std::mt19937 random(5);
  for (int change = 0; change < kChanges; ++change) {
    Toggle(1 + random() % (kServers - 1));
    // Otherwise those that are about to go meet the next change.
    if (change % 2 == 0) AwaitNobodyElse();
    if (change % 200 == 0) {
      const int before = gathers_;
      Await([&] { return gathers_ > before + 3; });
    }
  }
  stop = true;
  for (std::thread& gatherer : gatherers) gatherer.join();
  EXPECT_GE(connects_, 1000);
  // All at once need every slot that there is.
  for (size_t i = 1; i < kServers; ++i) {
    if (!named_[i]) Toggle(i);
  }
  AwaitNobodyElse();
  for (size_t i = 0; i < kServers; ++i) AwaitConnected(i, true);
  for (size_t i = 1; i < kServers; ++i) Toggle(i);
  AwaitNobodyElse();
  GatherAll();
  for (size_t i = 1; i < kServers; ++i) EXPECT_EQ(server(i).gathers_open(), 0u);
}

}  // namespace
}  // namespace engram

#include "engram_client/rpc/server_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <map>
#include <memory>

#include "core/base/check.h"
#include "engram_client/rpc/fake_table_server.h"
#include "engram_client/rpc/gather_queue.h"
#include "tests/unit/engram_client/rpc/connection_fixture.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Servers a, b, ... at addresses of the same names, of which a set knows two.
class ServerSetTest : public ConnectionFixture {
 protected:
  static constexpr size_t kMaxServers = 2;

  ServerSetTest() { spdlog::default_logger_raw(); }
  ~ServerSetTest() override {
    set_.Stop();
    timers_.Stop();
  }

  FakeTableServer& MakeServer(const std::string& address,
                              const std::string& name, uint64_t instance_id) {
    auto& server = made_[address];
    server = std::make_unique<FakeTableServer>(name, FakeTable(), instance_id);
    return *server;
  }
  std::unique_ptr<TableTransport> ConnectTo(const std::string& address) {
    ++transports_made_;
    return made_.at(address)->Connect();
  }
  // The slots of those that hold a partition.
  std::vector<ServerIndex> Holders() const {
    const auto snapshot = routing_.snapshot();
    const auto ready = snapshot->HoldersOf(0, 0).ready;
    return {ready.begin(), ready.end()};
  }
  bool Announced(ServerIndex slot) const {
    const auto snapshot = routing_.snapshot();
    return slot < snapshot->servers().size() &&
           snapshot->servers()[slot].announced;
  }
  std::vector<std::string> Addresses() const {
    std::vector<std::string> addresses;
    for (const auto& state : set_.servers()) addresses.push_back(state.address);
    return addresses;
  }

  int transports_made_ = 0;
  std::map<std::string, std::unique_ptr<FakeTableServer>> made_;
  TimerQueue timers_;
  RoutingTable routing_{0, [this] { Signal(); }};
  TableIdentity identity_{{}, ""};
  CallMonitor monitor_{0, {.health = {.max_servers = kMaxServers}}};
  TransportSlots transports_{kMaxServers};
  ServerSet set_{
      kMaxServers,
      {.make_transport =
           [this](const std::string& address) { return ConnectTo(address); },
       .transports = &transports_,
       .routing = &routing_,
       .identity = &identity_,
       .timers = &timers_,
       .monitor = &monitor_,
       .on_answer = [this] { Signal(); }}};
};

TEST_F(ServerSetTest, ConnectsWhatIsNamed) {
  MakeServer("a", "a", 1).HoldAll();
  MakeServer("b", "b", 2).HoldAll();
  EXPECT_FALSE(set_.all_answered());
  set_.Update({"a", "b"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 2; }));
  EXPECT_TRUE(set_.all_answered());
  EXPECT_THAT(Addresses(), ElementsAre("a", "b"));
  EXPECT_EQ(monitor_.metrics().servers.Value(), 2);
  EXPECT_EQ(monitor_.metrics().servers_limit.Value(), 2);
}

TEST_F(ServerSetTest, OneThatIsAbsentForOneLookIsNotDisturbed) {
  MakeServer("a", "a", 1).HoldAll();
  set_.Update({"a"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 1; }));
  const auto before = routing_.snapshot();
  set_.Update({});
  set_.RemoveGone();
  set_.Update({"a"});
  EXPECT_EQ(routing_.snapshot(), before);
  EXPECT_EQ(transports_made_, 1);
  EXPECT_EQ(made_.at("a")->warm_ups(), 1u);
}

TEST_F(ServerSetTest, OneThatIsGoneMakesRoom) {
  MakeServer("a", "a", 1).HoldAll();
  MakeServer("b", "b", 2).HoldAll();
  MakeServer("c", "c", 3).HoldAll();
  set_.Update({"a", "b", "c"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 2; }));
  EXPECT_THAT(Addresses(), ElementsAre("a", "b"));
  const uint64_t generation = routing_.snapshot()->servers()[0].generation;
  // Not named, but there.
  set_.Update({"b", "c"});
  EXPECT_THAT(Addresses(), ElementsAre("a", "b"));
  made_.at("a")->SetUp(false);
  ASSERT_TRUE(Eventually([&] { return !Announced(0); }));
  set_.Update({"b", "c"});
  EXPECT_THAT(Addresses(), ElementsAre("c", "b"));
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 2; }));
  EXPECT_GT(routing_.snapshot()->servers()[0].generation, generation);
  EXPECT_EQ(monitor_.metrics().servers.Value(), 2);
}

TEST_F(ServerSetTest, OneThatHasHandedOverAllMayGo) {
  FakeTableServer& server = MakeServer("a", "a", 1);
  server.Add(LayerId{1}, {0});
  set_.Update({"a"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 1; }));
  set_.Update({});
  server.Remove(LayerId{1}, {0});
  ASSERT_TRUE(Eventually([&] { return Holders().empty(); }));
  // It may still be answering.
  LoadCharge charge(routing_.snapshot()->load(0), 10);
  set_.RemoveGone();
  EXPECT_EQ(Addresses().size(), 1u);
  charge.Release();
  set_.RemoveGone();
  EXPECT_TRUE(Addresses().empty());
  EXPECT_EQ(routing_.snapshot()->servers().size(), 0u);
}

TEST_F(ServerSetTest, ANamedServerThatIsDownOrEmptyStays) {
  MakeServer("a", "a", 1).SetUp(false);
  MakeServer("b", "b", 2);
  set_.Update({"a", "b"});
  ASSERT_TRUE(Eventually([&] { return set_.all_answered() && Announced(1); }));
  set_.Update({"a", "b"});
  EXPECT_THAT(Addresses(), ElementsAre("a", "b"));
  EXPECT_EQ(transports_made_, 2);
}

TEST_F(ServerSetTest, AServerMayComeBackAtAnotherAddress) {
  MakeServer("old", "a", 1).HoldAll();
  set_.Update({"old"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 1; }));
  // The old one hangs: its connection is all that is left of it.
  MakeServer("new", "a", 2).HoldAll();
  set_.Update({"new"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 2; }));
  set_.RemoveGone();
  EXPECT_THAT(Addresses(), ElementsAre("new"));
  EXPECT_THAT(Holders(), ElementsAre(1));
  EXPECT_TRUE(identity_.conflict().ok());
}

TEST_F(ServerSetTest, ConfusedNamesDropNobodyThatIsNamed) {
  MakeServer("a", "twin", 1).HoldAll();
  MakeServer("b", "twin", 2).HoldAll();
  set_.Update({"a"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 1; }));
  set_.Update({"a", "b"});
  ASSERT_TRUE(Eventually([&] { return set_.all_answered(); }));
  set_.RemoveGone();
  EXPECT_THAT(Addresses(), ElementsAre("a", "b"));
  EXPECT_THAT(Holders(), ElementsAre(0));
}

TEST_F(ServerSetTest, CallsInFlightEndBeforeTheTransportDoes) {
  FakeTableServer& server = MakeServer("a", "a", 1);
  server.HoldAll();
  server.SwallowGathers(true);
  set_.Update({"a"});
  ASSERT_TRUE(Eventually([&] { return Holders().size() == 1; }));
  const uint64_t generation = routing_.snapshot()->servers()[0].generation;
  const RowId row = 3;
  const std::vector<TableTransport::RowRun> runs = {{LayerId{1}, {&row, 1}}};
  absl::Status ended;
  const auto call = transports_.Get(0, generation)
                        ->Gather({.version = "table-a",
                                  .runs = runs,
                                  .reply_bytes = FakeTable::kRowBytes},
                                 nullptr, [&](absl::Status status) {
                                   ended = std::move(status);
                                 });
  server.SetUp(false);
  ASSERT_TRUE(Eventually([&] { return !Announced(0); }));
  set_.Update({});
  EXPECT_TRUE(absl::IsCancelled(ended));
  call->Cancel();  // nothing
  EXPECT_FALSE(transports_.Get(0, generation));
}

}  // namespace
}  // namespace engram

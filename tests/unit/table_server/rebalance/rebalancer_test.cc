#include "table_server/rebalance/rebalancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_node.h"
#include "tests/unit/table_server/rebalance/scripted_peer.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

// Server "a"; the others are scripts.
class RebalancerTest : public ::testing::Test {
 protected:
  void Start(const Names& members, Rebalancer::Options options) {
    node_ = std::make_unique<Node>(std::move(options), members);
  }
  void Go() { node_->Start(peers_); }
  void StartAndGo(const Names& members) {
    Start(members, QuickOptions("a"));
    Go();
  }
  std::string WaitingFor() { return node_->State().moves().waiting_for(); }
  std::string Reason() { return node_->rebalancer().not_ready_reason(); }
  [[nodiscard]] bool BecomesReady() {
    return node_->rebalancer().WaitUntilReady(Soon()).ok();
  }
  bool IsHeard(const std::string& name) {
    const v1::ExchangeResponse state = node_->State();
    return std::any_of(
        state.members().begin(), state.members().end(),
        [&](const auto& m) { return m.name() == name && m.heard(); });
  }
  // A load that waits for the gate.
  FakeStore::LoadFn Gated() {
    return [this](const PartitionRef&, FakeStore::OnBytes) {
      return gate_.Pass() ? absl::OkStatus() : absl::InternalError("stuck");
    };
  }

  Gate gate_;
  FakeClock clock_{absl::UnixEpoch()};
  ScriptedPeer b_{"b"};
  ScriptedPeer impostor_{"x"};
  FakePeerCalls peers_;
  std::unique_ptr<Node> node_;  // last: its threads use all the others
};

TEST_F(RebalancerTest, LoadsWhatItOwnsThenIsReady) {
  Start({"a", "b"}, QuickOptions("a"));
  EXPECT_NE(Reason(), "");
  EXPECT_THAT(node_->rebalancer().WaitUntilReady(absl::InfinitePast()),
              IsError(absl::StatusCode::kDeadlineExceeded,
                      HasSubstr("server a is not ready")));
  Go();
  ASSERT_TRUE(BecomesReady());
  EXPECT_EQ(Reason(), "");
  EXPECT_TRUE(node_->IsSettled({"a", "b"}));
  EXPECT_EQ(node_->announced_when_ready(), node_->Owned());
  EXPECT_LT(node_->Owned().size(), kAll);
}

TEST_F(RebalancerTest, WaitsForItsFirstView) {
  Rebalancer::Options options = QuickOptions("a");
  options.membership.expected_servers = 2;
  Start({"a"}, options);
  node_->source().Set(absl::UnavailableError("SERVFAIL"));
  Go();
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Reason(), "SERV"); }));
  node_->SetMembers({"a"});
  EXPECT_TRUE(
      Eventually([&] { return absl::StrContains(Reason(), "1 of 2"); }));
  EXPECT_FALSE(node_->ready());
  EXPECT_TRUE(AnnouncedIn(node_->partitions()).empty());
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(BecomesReady());
}

TEST_F(RebalancerTest, IsNotReadyBeforeItIsAMember) {
  StartAndGo({"b", "c"});
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(Reason(), "none of the members: b, c");
  }));
  EXPECT_FALSE(node_->ready());
  node_->SetMembers({"a", "b", "c"});
  EXPECT_TRUE(BecomesReady());
  EXPECT_TRUE(Eventually([&] { return WaitingFor().empty(); }));
}

TEST_F(RebalancerTest, WrongBytesAreFatalBeforeItIsReady) {
  Start({"a"}, QuickOptions("a"));
  node_->store().OnLoad([](const PartitionRef&, FakeStore::OnBytes) {
    return absl::FailedPreconditionError("wrong digest");
  });
  Go();
  EXPECT_THAT(
      node_->rebalancer().WaitUntilReady(Soon()),
      IsError(absl::StatusCode::kFailedPrecondition, HasSubstr("digest")));
  EXPECT_THAT(Reason(), HasSubstr("wrong digest"));
  EXPECT_TRUE(AnnouncedIn(node_->partitions()).empty());
}

TEST_F(RebalancerTest, OtherFailuresAreTriedAgain) {
  Start({"a"}, QuickOptions("a"));
  std::atomic<int> failures{20};
  node_->store().OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return failures-- > 0 ? absl::UnavailableError("nobody holds it")
                          : absl::OkStatus();
  });
  Go();
  EXPECT_TRUE(BecomesReady());
  EXPECT_TRUE(node_->IsSettled({"a"}));
  EXPECT_TRUE(
      Eventually([&] { return node_->State().moves().failed_loads() == 20; }));
}

TEST_F(RebalancerTest, WrongBytesAreNotFatalOnceItIsReady) {
  StartAndGo({"a", "b"});
  ASSERT_TRUE(BecomesReady());
  std::atomic<bool> broken{true};
  node_->store().OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return broken.load() ? absl::DataLossError("wrong bytes")
                         : absl::OkStatus();
  });
  node_->SetMembers({"a"});
  EXPECT_TRUE(Eventually([&] { return WaitingFor() == "wrong bytes"; }));
  EXPECT_EQ(Reason(), "");
  EXPECT_THAT(node_->rebalancer().WaitUntilReady(Soon()), IsOk());
  broken.store(false);
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a"}); }));
  EXPECT_TRUE(Eventually([&] { return WaitingFor().empty(); }));
}

TEST_F(RebalancerTest, TooLittleMemoryIsNotReadyAndSaysTheSums) {
  Start({"a"}, QuickOptions("a"));
  node_->store().SetCapacity(kAll - 1);
  Go();
  EXPECT_TRUE(
      Eventually([&] { return Reason() == "15 partitions wanted, 14 fit"; }));
  EXPECT_EQ(node_->store().loads(), 0U);
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(BecomesReady());
}

TEST_F(RebalancerTest, AViewThatDoesNotFitIsNotFollowedUntilItDoes) {
  Rebalancer::Options options = QuickOptions("a");
  options.clock = &clock_;
  Start({"a", "b"}, options);
  Go();
  ASSERT_TRUE(BecomesReady());
  const std::string digest = node_->rebalancer().view()->digest();
  node_->store().SetCapacity(kAll - 1);
  node_->SetMembers({"a"});
  EXPECT_TRUE(Eventually(
      [&] { return WaitingFor() == "15 partitions wanted, 14 fit"; }));
  const v1::ExchangeResponse state = node_->State();
  EXPECT_EQ(state.view_digest(), digest);
  EXPECT_EQ(state.members_size(), 2);
  EXPECT_TRUE(node_->IsSettled({"a", "b"}));
  EXPECT_EQ(Reason(), "");
  // It is looked at again after a while.
  node_->store().SetCapacity(kAll);
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(absl::Milliseconds(100));
    return node_->IsSettled({"a"});
  }));
  EXPECT_TRUE(Eventually([&] { return WaitingFor().empty(); }));
}

TEST_F(RebalancerTest, WhatIsNotOwnedAnyMoreWhenItIsLoadedIsFreed) {
  Start({"a"}, QuickOptions("a"));
  node_->store().OnLoad(Gated());
  gate_.Close();
  Go();
  EXPECT_TRUE(Eventually([&] { return gate_.waiting() == 2; }));
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(Eventually([&] { return node_->State().members_size() == 2; }));
  gate_.Open();
  EXPECT_TRUE(BecomesReady());
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a", "b"}); }));
}

TEST_F(RebalancerTest, ItsEndDoesNotWaitForLoads) {
  Start({"a"}, QuickOptions("a"));
  node_->store().OnLoad([](const PartitionRef&, FakeStore::OnBytes on_bytes) {
    absl::Status status;
    while (status.ok()) status = on_bytes(1);
    return status;
  });
  Go();
  EXPECT_TRUE(
      Eventually([&] { return node_->State().moves().loading() == 2; }));
  node_->rebalancer().Stop();
  node_->rebalancer().Stop();
  EXPECT_FALSE(node_->ready());
  EXPECT_EQ(node_->State().server_name(), "a");  // it answers all the same
}

TEST_F(RebalancerTest, StopBeforeStart) {
  Start({"a"}, QuickOptions("a"));
  node_->rebalancer().Stop();
}

// However often it is told something.
TEST_F(RebalancerTest, LooksAtMostFiftyTimesASecond) {
  Start({"a"}, QuickOptions("a"));
  node_->store().OnLoad(Gated());
  gate_.Close();
  Go();
  EXPECT_TRUE(Eventually([&] { return node_->looks() > 0; }));
  const size_t before = node_->looks();
  const absl::Time began = Clock::Steady().Now();
  uint64_t told = 0;
  while (node_->looks() < before + 10) {
    v1::ExchangeRequest request;
    request.set_server_name("b");
    request.add_departures()->set_server_name("c");
    request.mutable_departures(0)->set_instance_id(++told);
    ASSERT_THAT(node_->Answer(request), IsOk());
  }
  EXPECT_GE(Clock::Steady().Now() - began, absl::Milliseconds(9 * 20));
  EXPECT_GT(told, 20U);
  gate_.Open();
}

TEST_F(RebalancerTest, StateAndMetrics) {
  b_.ListenIn(peers_);  // "c" is not there
  StartAndGo({"a", "b", "c"});
  ASSERT_TRUE(BecomesReady());
  EXPECT_TRUE(Eventually([&] { return IsHeard("b"); }));
  const v1::ExchangeResponse state = node_->State();
  EXPECT_EQ(state.view_digest(), node_->rebalancer().view()->digest());
  EXPECT_EQ(state.replicas(), 1U);
  EXPECT_FALSE(state.leaving());
  EXPECT_FALSE(state.draining());
  ASSERT_EQ(state.members_size(), 3);
  EXPECT_EQ(state.members(0).name(), "a");
  EXPECT_EQ(state.members(0).address(), "a:1");
  EXPECT_TRUE(state.members(0).heard());
  EXPECT_FALSE(state.members(2).heard());
  const size_t owned = node_->Owned().size();
  EXPECT_EQ(state.moves().owned(), owned);
  EXPECT_EQ(state.moves().to_load(), 0U);
  EXPECT_EQ(state.moves().memory_bytes(), owned * kPartitionBytes);
  EXPECT_EQ(state.moves().loaded_bytes(), owned * kPartitionBytes);
  std::map<std::string, double> gauges;
  for (const auto& family : node_->registry().Collect()) {
    gauges[family.name] = family.metric.front().gauge.value;
  }
  EXPECT_EQ(gauges["engram_table_members"], 3);
  EXPECT_EQ(gauges["engram_table_members_heard"], 2);
  EXPECT_EQ(gauges["engram_table_read_bytes"], owned * kPartitionBytes);
}

TEST_F(RebalancerTest, AddressesAreThoseOfNow) {
  StartAndGo({"a", "b"});
  ASSERT_TRUE(BecomesReady());
  b_.ListenIn(peers_, "elsewhere:2");
  std::vector<Member> moved = Members({"a", "b"});
  moved.back().address = "elsewhere:2";
  node_->source().Set(moved);
  EXPECT_TRUE(Eventually([&] { return IsHeard("b"); }));
  EXPECT_EQ(node_->State().members(1).address(), "elsewhere:2");
  EXPECT_EQ(peers_.retained(), Names{"elsewhere:2"});
}

TEST_F(RebalancerTest, AnotherServerAtAPeersAddressIsNotThePeer) {
  impostor_.ListenIn(peers_, "b:1");
  StartAndGo({"a", "b"});
  ASSERT_TRUE(BecomesReady());
  EXPECT_TRUE(Eventually([&] { return impostor_.calls() > 2; }));
  EXPECT_FALSE(IsHeard("b"));
}

TEST_F(RebalancerTest, HoldersAreWhoSaysSo) {
  const PartitionRef ref{LayerId{14}, PartitionId{6}};
  b_.Change([&](ScriptedPeer::Script& script) { script.held = {ref}; });
  b_.ListenIn(peers_);
  StartAndGo({"a", "b"});
  EXPECT_TRUE(Eventually(
      [&] { return node_->rebalancer().HoldersOf(ref).size() == 1; }));
  EXPECT_EQ(node_->rebalancer().HoldersOf(ref)[0].name, "b");
  EXPECT_EQ(node_->rebalancer().HoldersOf(ref)[0].address, "b:1");
  peers_.Remove("b:1");
  EXPECT_TRUE(
      Eventually([&] { return node_->rebalancer().HoldersOf(ref).empty(); }));
}

// Its clock was set back after an instance of it had left.
TEST_F(RebalancerTest, ALaterInstanceThatLeftKeepsItOutAndItSaysSo) {
  b_.Change([](ScriptedPeer::Script& script) {
    script.departures = {{"a", UINT64_MAX}};
  });
  b_.ListenIn(peers_);
  StartAndGo({"a", "b"});
  EXPECT_TRUE(Eventually(
      [&] { return absl::StrContains(WaitingFor(), "clock was set back"); }));
  EXPECT_FALSE(node_->State().leaving());
}

}  // namespace
}  // namespace engram::test

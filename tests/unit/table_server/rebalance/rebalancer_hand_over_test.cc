#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_node.h"
#include "tests/unit/table_server/rebalance/scripted_peer.h"

namespace engram::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Refs = std::set<PartitionRef>;

constexpr absl::Duration kLinger = absl::Hours(1);

Refs OwnedBy(const std::string& name, const Names& members) {
  return ToSet(ClusterView::Create(SmallManifest(),
                                   {.self = name, .members = Members(members)})
                   .value()
                   ->owned());
}

// Server "a", which holds all and then sees "b" come; time stands still.
class RebalancerHandOverTest : public ::testing::Test {
 protected:
  void HoldAll() {
    Rebalancer::Options options = QuickOptions("a");
    options.clock = &clock_;
    options.membership.death_delay = 100 * kLinger;
    options.hand_over = {.announce_linger = kLinger,
                         .answer_linger = kLinger,
                         .confirm_within = kLinger};
    node_ = std::make_unique<Node>(options, Names{"a"});
    b_.ListenIn(peers_);
    node_->Start(peers_);
    ASSERT_THAT(node_->rebalancer().WaitUntilReady(Soon()), IsOk());
    ASSERT_EQ(AnnouncedIn(node_->partitions()).size(), kAll);
  }
  v1::ExchangeResponse::Moves Moves() { return node_->State().moves(); }
  Refs Announced() { return AnnouncedIn(node_->partitions()); }
  Refs Held() {
    Refs held;
    for (size_t i = 0; i < SmallManifest().layers().size(); ++i) {
      for (uint32_t p = 0; p < SmallManifest().partition_count(i); ++p) {
        if (!node_->partitions().Holds(i, p)) continue;
        held.insert({SmallManifest().layers()[i].layer_id, PartitionId{p}});
      }
    }
    return held;
  }
  // While time goes on, far more slowly than lingers end.
  [[nodiscard]] bool InTime(const std::function<bool()>& holds) {
    return Eventually([&] {
      clock_.Advance(absl::Milliseconds(20));
      return holds();
    });
  }

  const Refs of_a_ = OwnedBy("a", {"a", "b"});
  const Refs of_b_ = OwnedBy("b", {"a", "b"});
  FakeClock clock_{absl::UnixEpoch()};
  ScriptedPeer b_{"b"};
  FakePeerCalls peers_;
  std::unique_ptr<Node> node_;  // last: its threads use all the others
};

TEST_F(RebalancerHandOverTest, StepByStep) {
  HoldAll();
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(InTime([&] { return b_.asked() == of_b_; }));
  const size_t calls = b_.calls();
  EXPECT_TRUE(InTime([&] { return b_.calls() > calls + 3; }));
  EXPECT_EQ(Moves().to_free(), of_b_.size());
  EXPECT_EQ(Announced().size(), kAll);

  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  EXPECT_TRUE(InTime([&] { return Moves().lingering() == of_b_.size(); }));
  EXPECT_EQ(Moves().to_free(), 0U);
  EXPECT_EQ(Announced().size(), kAll);

  clock_.Advance(kLinger);
  EXPECT_TRUE(InTime([&] { return Announced() == of_a_; }));
  EXPECT_EQ(Held().size(), kAll);  // asked again, withdrawn, answered for

  LeaseEpochs::Lease lease = node_->partitions().TakeLease();
  clock_.Advance(kLinger);
  EXPECT_TRUE(InTime([&] { return Held() == of_a_; }));
  const size_t later = b_.calls();
  EXPECT_TRUE(InTime([&] { return b_.calls() > later + 2; }));
  EXPECT_EQ(node_->store().loaded().size(), kAll);  // a gather reads it
  lease.End();
  EXPECT_TRUE(InTime([&] { return node_->IsSettled({"a", "b"}); }));
  EXPECT_TRUE(InTime([&] { return Moves().lingering() == 0; }));
  EXPECT_EQ(node_->store().loads(), kAll);
}

TEST_F(RebalancerHandOverTest, NothingIsGivenUpToAServerThatLostItInTheLinger) {
  HoldAll();
  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(InTime([&] { return Moves().lingering() == of_b_.size(); }));
  b_.Change([](ScriptedPeer::Script& script) { script = {}; });  // restarted
  clock_.Advance(kLinger);
  const size_t calls = b_.calls();
  EXPECT_TRUE(InTime([&] { return b_.calls() > calls + 5; }));
  EXPECT_EQ(Announced().size(), kAll);
  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  EXPECT_TRUE(InTime([&] { return Announced() == of_a_; }));
}

TEST_F(RebalancerHandOverTest, WhatWasWithdrawnIsAnnouncedAgainWithoutALoad) {
  HoldAll();
  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(InTime([&] { return Moves().lingering() == of_b_.size(); }));
  clock_.Advance(kLinger);
  EXPECT_TRUE(InTime([&] { return Announced() == of_a_; }));
  node_->SetMembers({"a"});
  EXPECT_TRUE(InTime([&] { return node_->IsSettled({"a"}); }));
  EXPECT_EQ(node_->store().loads(), kAll);
}

TEST_F(RebalancerHandOverTest, WhyNothingIsGivenUp) {
  HoldAll();
  peers_.Remove("b:1");
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(
      InTime([&] { return Moves().waiting_for() == "no answer from b"; }));
  b_.Change([](ScriptedPeer::Script& script) { script.view_digest = "x"; });
  b_.ListenIn(peers_);
  EXPECT_TRUE(InTime(
      [&] { return Moves().waiting_for() == "other members are seen by b"; }));
  b_.Change(
      [](ScriptedPeer::Script& script) { script = {.takes_over = true}; });
  EXPECT_TRUE(InTime([&] { return Moves().waiting_for().empty(); }));
}

TEST_F(RebalancerHandOverTest, LeavesWhenItIsTold) {
  HoldAll();
  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  node_->SetMembers({"a", "b"});
  EXPECT_TRUE(InTime([&] { return node_->State().members_size() == 2; }));
  EXPECT_THAT(node_->rebalancer().calls().Leave({}), IsOk());
  EXPECT_TRUE(InTime([&] { return node_->State().leaving(); }));
  EXPECT_TRUE(InTime([&] {
    const auto told = b_.told();
    return std::any_of(told.begin(), told.end(),
                       [](const MemberDeparture& d) { return d.name == "a"; });
  }));
  EXPECT_EQ(Announced().size(), kAll);
  EXPECT_TRUE(InTime([&] { return Moves().lingering() == kAll; }));
  clock_.Advance(kLinger);
  EXPECT_TRUE(InTime([&] { return Announced().empty(); }));
  clock_.Advance(kLinger);
  EXPECT_TRUE(InTime([&] { return node_->IsSettled({"b"}); }));
  EXPECT_EQ(Moves().waiting_for(), "");
  EXPECT_EQ(node_->rebalancer().not_ready_reason(), "");
}

TEST_F(RebalancerHandOverTest, TheLastServerKeepsAllThoughItIsToldToLeave) {
  HoldAll();
  EXPECT_THAT(node_->rebalancer().calls().Leave({}), IsOk());
  EXPECT_TRUE(InTime([&] {
    return Moves().waiting_for() == "no other member is left to take over";
  }));
  EXPECT_EQ(Announced().size(), kAll);
}

TEST_F(RebalancerHandOverTest, OneThatLeavesIsNoMemberAtOnce) {
  HoldAll();
  node_->SetMembers({"a", "b", "c"});
  EXPECT_TRUE(InTime([&] { return node_->State().members_size() == 3; }));
  b_.Change([](ScriptedPeer::Script& script) {
    script.departures = {{"c", 5}};
  });
  EXPECT_TRUE(InTime([&] { return node_->State().members_size() == 2; }));
  const v1::ExchangeResponse state = node_->State();
  EXPECT_THAT(FromDepartureList(state.departures()),
              ElementsAre(MemberDeparture{"c", 5}));
}

}  // namespace
}  // namespace engram::test

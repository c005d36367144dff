#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_node.h"
#include "tests/unit/table_server/rebalance/scripted_peer.h"

namespace engram::test {
namespace {

// Server "a", ready, of members "a" and "b".
class RebalancerExitTest : public ::testing::Test {
 protected:
  ~RebalancerExitTest() override {
    if (exit_.joinable()) exit_.join();
  }

  void Start(const Names& members, uint32_t replicas) {
    Rebalancer::Options options = QuickOptions("a");
    options.replicas = replicas;
    options.exchange_interval = absl::Seconds(1);  // the patience is of it
    node_ = std::make_unique<Node>(options, members);
    b_.ListenIn(peers_);
    node_->Start(peers_);
    ASSERT_THAT(node_->rebalancer().WaitUntilReady(Soon()), IsOk());
  }
  // All of the table, of two members and two replicas.
  std::vector<PartitionRef> All() {
    return node_->rebalancer().view()->owned();
  }
  bool HandOverAll() { return node_->rebalancer().HandOverAll(Soon()); }
  void StartToExit() {
    exit_ = std::thread([this] { handed_over_ = HandOverAll(); });
  }
  bool Ended() {
    exit_.join();
    return handed_over_;
  }

  ScriptedPeer b_{"b"};
  FakePeerCalls peers_;
  std::unique_ptr<Node> node_;
  bool handed_over_ = false;  // of exit_, until it is joined
  std::thread exit_;
};

TEST_F(RebalancerExitTest, WithoutAViewThereIsNothingToHandOver) {
  Node node(QuickOptions("a"), {"a"});
  EXPECT_TRUE(node.rebalancer().HandOverAll(Soon()));
}

TEST_F(RebalancerExitTest, TheOnlyServerEndsAtOnce) {
  Start({"a"}, 1);
  EXPECT_FALSE(HandOverAll());
  EXPECT_FALSE(node_->State().leaving());
}

TEST_F(RebalancerExitTest, WithOneReplicaItLeavesAndEndsWhenOthersHoldAll) {
  Start({"a", "b"}, 1);
  b_.Change([](ScriptedPeer::Script& script) { script.takes_over = true; });
  EXPECT_TRUE(HandOverAll());
  EXPECT_TRUE(node_->State().leaving());
  EXPECT_TRUE(node_->State().draining());
  EXPECT_EQ(b_.told().size(), 1U);
}

TEST_F(RebalancerExitTest, WithTwoReplicasItStaysAMember) {
  Start({"a", "b"}, 2);
  b_.Change([this](ScriptedPeer::Script& script) { script.held = All(); });
  EXPECT_TRUE(Eventually([&] { return b_.calls() > 0; }));
  const size_t calls = b_.calls();
  EXPECT_TRUE(HandOverAll());
  EXPECT_GT(b_.calls(), calls);  // what it said before did not count
  EXPECT_FALSE(node_->State().leaving());
}

TEST_F(RebalancerExitTest, WaitsForAnOwnerThatLoads) {
  Start({"a", "b"}, 2);
  b_.Change([](ScriptedPeer::Script& script) { script.ready = false; });
  StartToExit();
  const size_t calls = b_.calls();
  EXPECT_TRUE(Eventually([&] { return b_.calls() > calls + 4; }));
  b_.Change([this](ScriptedPeer::Script& script) {
    script.ready = true;
    script.held = All();
  });
  EXPECT_TRUE(Ended());
  EXPECT_FALSE(node_->State().leaving());
}

TEST_F(RebalancerExitTest, WhenAllGoNobodyWaits) {
  Start({"a", "b"}, 2);
  b_.Change([](ScriptedPeer::Script& script) { script.draining = true; });
  EXPECT_FALSE(HandOverAll());
  EXPECT_FALSE(node_->State().leaving());
}

TEST_F(RebalancerExitTest, WaitsNoLongerThanItIsAllowed) {
  Start({"a", "b"}, 1);
  EXPECT_FALSE(
      node_->rebalancer().HandOverAll(absl::Now() + absl::Milliseconds(300)));
}

TEST_F(RebalancerExitTest, StopEndsTheWait) {
  Start({"a", "b"}, 1);
  StartToExit();
  EXPECT_TRUE(Eventually([&] { return node_->State().leaving(); }));
  node_->rebalancer().Stop();
  EXPECT_FALSE(Ended());
}

TEST_F(RebalancerExitTest, RelyingOnItEndsAtOnce) {
  Start({"a", "b"}, 2);
  v1::ExchangeRequest request;
  request.set_server_name("b");
  request.set_view_digest(node_->rebalancer().view()->digest());
  *request.mutable_to_free() =
      ToLayerPartitions(All(), LayersOf(SmallManifest()));
  EXPECT_GT(node_->Answer(request)->acknowledged_size(), 0);
  b_.Change([](ScriptedPeer::Script& script) { script.draining = true; });
  EXPECT_FALSE(HandOverAll());
  EXPECT_EQ(node_->Answer(request)->acknowledged_size(), 0);
}

}  // namespace
}  // namespace engram::test

// A partition whose rows turn out to be damaged where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_node.h"

namespace engram::test {
namespace {

using ::testing::Contains;
using ::testing::Not;

// Server "a", alone, which holds all.
class RebalancerDamageTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(QuickOptions("a")); }
  void Start(Rebalancer::Options options) {
    node_ = std::make_unique<Node>(std::move(options), Names{"a"});
    node_->Start(peers_);
    ASSERT_THAT(node_->rebalancer().WaitUntilReady(Soon()), IsOk());
  }
  bool Holds() { return node_->partitions().Holds(0, ToInt(ref_.partition)); }

  const PartitionRef ref_{SmallManifest().layers()[0].layer_id, PartitionId{2}};
  FakePeerCalls peers_;
  std::unique_ptr<Node> node_;  // last: its threads use all the others
};

TEST_F(RebalancerDamageTest, IsGivenUpAtOnceAndLoadedAnewOnceNobodyReadsIt) {
  std::optional<LeaseEpochs::Lease> lease = node_->partitions().TakeLease();
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Eventually([&] { return !Holds(); }));
  EXPECT_THAT(AnnouncedIn(node_->partitions()), Not(Contains(ref_)));
  // Whoever has read it may report it until its lease ends.
  for (int i = 0; i < 3; ++i) node_->rebalancer().OnDamaged(ref_);
  EXPECT_THAT(node_->store().loaded(), Contains(ref_));
  EXPECT_EQ(node_->store().loads(), kAll);
  lease.reset();
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a"}); }));
  EXPECT_EQ(node_->store().loads(), kAll + 1);
  EXPECT_TRUE(Holds());
  EXPECT_EQ(node_->rebalancer().not_ready_reason(), "");
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Eventually([&] { return node_->store().loads() == kAll + 2; }));
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a"}); }));
}

TEST_F(RebalancerDamageTest, IsTriedAgainUntilItCanBeHad) {
  std::atomic<int> failures{5};
  node_->store().OnLoad([&](const PartitionRef&, FakeStore::OnBytes) {
    return failures-- > 0 ? absl::DataLossError("still wrong")
                          : absl::OkStatus();
  });
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Eventually([&] { return node_->store().loads() == kAll + 1; }));
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a"}); }));
  EXPECT_THAT(node_->rebalancer().WaitUntilReady(Soon()), IsOk());
}

TEST_F(RebalancerDamageTest, IsNotLoadedAgainAndAgain) {
  Rebalancer::Options options = QuickOptions("a");
  options.hand_over.retry_load = absl::Hours(1);
  Start(options);
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Eventually([&] { return node_->store().loads() == kAll + 1; }));
  EXPECT_TRUE(Eventually([&] { return node_->IsSettled({"a"}); }));
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Eventually([&] { return !Holds(); }));
  // Others are, and would be after it.
  const PartitionRef other{ref_.layer, PartitionId{3}};
  node_->rebalancer().OnDamaged(other);
  EXPECT_TRUE(Eventually([&] { return node_->store().loads() == kAll + 2; }));
  EXPECT_FALSE(Holds());
  EXPECT_THAT(node_->store().loaded(), Not(Contains(ref_)));
}

TEST_F(RebalancerDamageTest, AReportAfterTheEndIsNothing) {
  node_->rebalancer().Stop();
  node_->rebalancer().OnDamaged(ref_);
  EXPECT_TRUE(Holds());
}

}  // namespace
}  // namespace engram::test

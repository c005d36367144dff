#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_node.h"

namespace engram::test {
namespace {

// Rebalancers that call each other directly. Whenever one withdraws a
// partition, another has to announce it.
class Cluster {
 public:
  explicit Cluster(uint32_t replicas) : replicas_(replicas) {}
  ~Cluster() {
    for (auto& [name, node] : nodes_) node->rebalancer().Stop();
  }

  // Comes to life; members are to be named by SetMembers.
  Node& Start(const std::string& name, const Names& members) {
    Rebalancer::Options options = QuickOptions(name);
    options.replicas = replicas_;
    auto node = std::make_unique<Node>(options, members);
    Node* const raw = node.get();
    raw->partitions().AddListener(std::make_shared<Watcher>(*this, *raw));
    calls_.Set(raw->address(), {.exchange =
                                    [raw](const v1::ExchangeRequest& request) {
                                      return raw->Answer(request);
                                    },
                                .fetch = nullptr});
    {
      MutexLock lock(&mutex_);
      nodes_.insert_or_assign(name, std::move(node));
      alive_.insert(name);
    }
    raw->Start(calls_);
    return *raw;
  }
  void StartAll(const Names& names) {
    for (const std::string& name : names) Start(name, names);
    for (const std::string& name : names) {
      EXPECT_THAT(node(name).rebalancer().WaitUntilReady(Soon()), IsOk());
    }
    watching_.store(true);
  }
  // The process ends.
  void End(const std::string& name) {
    node(name).rebalancer().Stop();
    calls_.Remove(node(name).address());
    MutexLock lock(&mutex_);
    alive_.erase(name);
  }
  void SetMembers(const Names& members) {
    for (auto& [name, node] : nodes_) node->SetMembers(members);
  }
  [[nodiscard]] bool Settles(const Names& members) {
    return Eventually([&] {
      return std::all_of(members.begin(), members.end(), [&](const auto& name) {
        return node(name).IsSettled(members);
      });
    });
  }
  Node& node(const std::string& name) { return *nodes_.at(name); }
  size_t loads() const {
    size_t loads = 0;
    for (const auto& [name, node] : nodes_) loads += node->store().loads();
    return loads;
  }
  // Partitions that nobody of those that are alive announces.
  std::set<PartitionRef> Uncovered() {
    MutexLock lock(&mutex_);
    std::set<PartitionRef> uncovered;
    for (const ManifestLayer& layer : SmallManifest().layers()) {
      const size_t index = *SmallManifest().IndexOf(layer.layer_id);
      for (uint32_t p = 0; p < SmallManifest().partition_count(index); ++p) {
        uncovered.insert({layer.layer_id, PartitionId{p}});
      }
    }
    for (const std::string& name : alive_) {
      for (const PartitionRef& ref :
           AnnouncedIn(nodes_.at(name)->partitions())) {
        uncovered.erase(ref);
      }
    }
    return uncovered;
  }

 private:
  // What one announces less is announced by others, which began before.
  class Watcher final : public PartitionSet::Listener {
   public:
    Watcher(Cluster& cluster, Node& node) : cluster_(cluster), node_(node) {}
    void OnPartitionsChanged() override {
      const auto changes = node_.partitions().ChangesSince(position_);
      position_ = changes.position;
      if (changes.removed.empty() || !cluster_.watching_.load()) return;
      EXPECT_TRUE(cluster_.Uncovered().empty())
          << node_.name() << " was the last to announce something";
    }

   private:
    Cluster& cluster_;
    Node& node_;
    uint64_t position_ = 0;  // of the node's thread
  };

  const uint32_t replicas_;
  FakePeerCalls calls_;
  std::atomic<bool> watching_{false};
  Mutex mutex_;
  std::set<std::string> alive_ ABSL_GUARDED_BY(mutex_);
  // Nodes stay when they have ended: calls to them may be under way. Changed by
  // the test's thread, under mutex_.
  std::map<std::string, std::unique_ptr<Node>> nodes_;
};

// Copies that `members` need and `before` did not have.
size_t Moves(const Names& before, const Names& members, uint32_t replicas) {
  const auto owned = [&](const std::string& name, const Names& names) {
    return ToSet(
        ClusterView::Create(
            SmallManifest(),
            {.self = name, .members = Members(names), .replicas = replicas})
            .value()
            ->owned());
  };
  size_t moves = 0;
  for (const std::string& name : members) {
    const std::set<PartitionRef> had = owned(name, before);
    for (const PartitionRef& ref : owned(name, members)) {
      moves += had.contains(ref) ? 0 : 1;
    }
  }
  return moves;
}

class RebalancerClusterTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t replicas() const { return GetParam(); }
  Cluster cluster_{GetParam()};
};

TEST_P(RebalancerClusterTest, GrowsAndShrinks) {
  const Names two = {"a", "b"};
  const Names three = {"a", "b", "c"};
  cluster_.StartAll(two);
  size_t loads = cluster_.loads();
  EXPECT_EQ(loads, Moves({}, two, replicas()));
  cluster_.Start("c", three);
  cluster_.SetMembers(three);
  EXPECT_TRUE(cluster_.Settles(three));
  EXPECT_THAT(cluster_.node("c").rebalancer().WaitUntilReady(Soon()), IsOk());
  EXPECT_EQ(cluster_.loads(), loads += Moves(two, three, replicas()));
  cluster_.SetMembers(two);
  EXPECT_TRUE(cluster_.Settles(two));
  EXPECT_TRUE(Eventually(
      [&] { return AnnouncedIn(cluster_.node("c").partitions()).empty(); }));
  EXPECT_EQ(cluster_.loads(), loads += Moves(three, two, replicas()));
  EXPECT_TRUE(cluster_.node("c").rebalancer().HandOverAll(Soon()));
  cluster_.End("c");
  EXPECT_TRUE(cluster_.Uncovered().empty());
}

TEST_P(RebalancerClusterTest, OneSeesTheChangeLater) {
  const Names two = {"a", "b"};
  const Names three = {"a", "b", "c"};
  cluster_.StartAll(three);
  cluster_.node("a").SetMembers(two);
  cluster_.node("c").SetMembers(two);
  EXPECT_TRUE(Eventually([&] {
    return cluster_.node("c").State().moves().waiting_for() ==
           "other members are seen by b";
  }));
  EXPECT_FALSE(AnnouncedIn(cluster_.node("c").partitions()).empty());
  cluster_.node("b").SetMembers(two);
  EXPECT_TRUE(cluster_.Settles(two));
}

TEST_P(RebalancerClusterTest, ADrainedServerHandsOverAll) {
  cluster_.StartAll({"a", "b", "c"});
  EXPECT_THAT(cluster_.node("b").rebalancer().calls().Leave({}), IsOk());
  EXPECT_TRUE(cluster_.Settles({"a", "c"}));
  EXPECT_TRUE(cluster_.node("b").State().leaving());
  EXPECT_TRUE(
      Eventually([&] { return cluster_.node("b").store().loaded().empty(); }));
  EXPECT_TRUE(cluster_.node("b").rebalancer().HandOverAll(Soon()));
}

TEST_P(RebalancerClusterTest, OneThatEndsTakesNothingWithIt) {
  const Names three = {"a", "b", "c"};
  cluster_.StartAll(three);
  const size_t loads = cluster_.loads();
  EXPECT_TRUE(cluster_.node("b").rebalancer().HandOverAll(Soon()));
  cluster_.End("b");
  EXPECT_TRUE(cluster_.Uncovered().empty());
  if (replicas() > 1) {  // it is a member that will come back
    EXPECT_EQ(cluster_.loads(), loads);
    EXPECT_FALSE(cluster_.node("b").State().leaving());
    EXPECT_TRUE(cluster_.node("a").IsSettled(three));
  } else {
    EXPECT_TRUE(cluster_.Settles({"a", "c"}));
  }
}

TEST_P(RebalancerClusterTest, TwoThatEndAtATimeTakeNothingWithThem) {
  cluster_.StartAll({"a", "b", "c", "d"});
  std::vector<std::thread> exits;
  for (const char* name : {"b", "c"}) {
    exits.emplace_back([this, name] {
      EXPECT_TRUE(cluster_.node(name).rebalancer().HandOverAll(Soon()));
      cluster_.End(name);
      EXPECT_TRUE(cluster_.Uncovered().empty());
    });
  }
  for (std::thread& exit : exits) exit.join();
  EXPECT_TRUE(cluster_.Uncovered().empty());
}

TEST_P(RebalancerClusterTest, AllEndAtATimeWithoutAWait) {
  const Names three = {"a", "b", "c"};
  cluster_.StartAll(three);
  const absl::Time began = absl::Now();
  std::vector<std::thread> exits;
  for (const std::string& name : three) {
    exits.emplace_back([this, name] {
      cluster_.node(name).rebalancer().HandOverAll(absl::InfiniteFuture());
      cluster_.End(name);
    });
  }
  for (std::thread& exit : exits) exit.join();
  EXPECT_LT(absl::Now() - began, absl::Seconds(60));
}

INSTANTIATE_TEST_SUITE_P(Replicas, RebalancerClusterTest,
                         ::testing::Values(1, 2));

}  // namespace
}  // namespace engram::test

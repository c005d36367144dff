#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "table_server/rebalance/cluster_view.h"
#include "table_server/rebalance/partition_index.h"
#include "tests/unit/table_server/rebalance/simulated_cluster.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {
namespace {

using Names = SimulatedCluster::Names;

// Servers whose views are any members at any time, until all see the same.
// At two replicas one of them crashes and starts again.
class AnyViews {
 public:
  AnyViews(uint32_t replicas, uint64_t seed)
      : random_(seed),
        replicas_(replicas),
        settings_(DrawSettings()),
        cluster_(settings_, seed + 1) {
    const size_t count = replicas + 1 + random_.Below(4);
    for (size_t i = 0; i < count; ++i) {
      names_.push_back(absl::StrCat("t", i));
      cluster_.Start(names_.back());
    }
    Agree();
  }

  void Round() {
    bool may_crash = replicas_ > 1 && random_.Chance(0.7);
    // Views between which the servers go to and fro, or always others.
    views_.clear();
    const size_t few = random_.Chance(0.3) ? 0 : 2 + random_.Below(2);
    for (size_t i = 0; i < few; ++i) views_.push_back(AnyView());
    const size_t changes = 1 + random_.Below(30);
    const absl::Duration most_between =
        random_.Chance(0.7) ? absl::Seconds(1) : absl::Seconds(10);
    for (size_t i = 0; i < changes && cluster_.broken().empty(); ++i) {
      cluster_.Run(random_.UpTo(most_between));
      const std::string& name = names_[random_.Below(names_.size())];
      if (may_crash && random_.Chance(0.2) && cluster_.CanLose(name)) {
        may_crash = false;
        cluster_.Kill(name);
        cluster_.Run(random_.UpTo(absl::Seconds(3)));
        cluster_.Start(name);
      }
      cluster_.SetView(name, few > 0 ? views_[random_.Below(few)] : AnyView());
    }
    Agree();
  }

  const SimulatedCluster& cluster() const { return cluster_; }

 private:
  SimulatedCluster::Settings DrawSettings() {
    SimulatedCluster::Settings settings =
        SimulatedCluster::Settings::Draw(random_);
    settings.replicas = replicas_;
    return settings;
  }
  Names AnyView() {
    Names some;
    while (some.size() < replicas_) {
      some.clear();
      for (const std::string& name : names_) {
        if (random_.Chance(0.5)) some.push_back(name);
      }
    }
    return some;
  }
  // All come to see the same members, one after another.
  void Agree() {
    const Names view = AnyView();
    for (const std::string& name : names_) {
      cluster_.Run(random_.UpTo(absl::Seconds(1)));
      cluster_.SetView(name, view);
    }
    cluster_.Settle(view, absl::Minutes(10));
  }

  Random random_;
  const uint32_t replicas_;
  const SimulatedCluster::Settings settings_;
  SimulatedCluster cluster_;
  Names names_;
  std::vector<Names> views_;
};

class HandOverSimulation : public ::testing::TestWithParam<uint32_t> {};

TEST_P(HandOverSimulation, SomebodyHoldsEveryPartitionWhateverTheViews) {
  SimulatedCluster::Totals totals;
  for (uint64_t seed = 0; seed < kSimulatedClusters; ++seed) {
    AnyViews views(GetParam(), seed);
    for (int i = 0; i < 2 && views.cluster().broken().empty(); ++i) {
      views.Round();
    }
    ASSERT_EQ(views.cluster().broken(), "") << "seed " << seed;
    totals.loads += views.cluster().totals().loads;
    totals.discarded += views.cluster().totals().discarded;
    totals.withdrawn += views.cluster().totals().withdrawn;
    totals.announced_again += views.cluster().totals().announced_again;
  }
  RecordProperty("loads", absl::StrCat(totals.loads));
  RecordProperty("discarded", absl::StrCat(totals.discarded));
  RecordProperty("withdrawn", absl::StrCat(totals.withdrawn));
  RecordProperty("announced_again", absl::StrCat(totals.announced_again));
  EXPECT_GT(totals.discarded, kSimulatedClusters / 10);
  EXPECT_GT(totals.withdrawn, 10 * kSimulatedClusters);
  EXPECT_GT(totals.announced_again, kSimulatedClusters / 10);
}

// What `name` owns in a view of `members`, by number of the partition.
std::vector<bool> OwnedBy(const std::string& name, const Names& members,
                          uint32_t replicas) {
  const auto view =
      ClusterView::Create(
          SmallManifest(),
          {.self = name, .members = Members(members), .replicas = replicas})
          .value();
  const PartitionIndex index(SmallManifest());
  std::vector<bool> owned(index.size());
  for (const PartitionRef& ref : view->owned()) owned[*index.Find(ref)] = true;
  return owned;
}

// Of a change that all hear of sooner or later, and no other.
TEST_P(HandOverSimulation, OneChangeLoadsWhatMovesAndNothingElse) {
  const uint32_t replicas = GetParam();
  const Names all = {"a", "b", "c", "d", "e"};
  for (uint64_t seed = 0; seed < kSimulatedClusters / 20; ++seed) {
    Random random(seed);
    SimulatedCluster::Settings settings =
        SimulatedCluster::Settings::Draw(random);
    settings.replicas = replicas;
    SimulatedCluster cluster(settings, seed);
    for (const std::string& name : all) cluster.Start(name);
    uint64_t loads = 0;
    for (const size_t count : {2, 4, 3, 5}) {
      const Names members(all.begin(), all.begin() + count);
      for (const std::string& name : all) {
        const std::vector<bool> before = cluster.AnnouncedBy(name);
        const std::vector<bool> after = OwnedBy(name, members, replicas);
        for (size_t i = 0; i < after.size(); ++i) {
          loads += after[i] && !before[i] ? 1 : 0;
        }
        cluster.time().After(
            random.UpTo(absl::Seconds(5)),
            [&cluster, name, members] { cluster.SetView(name, members); });
      }
      cluster.Run(absl::Seconds(5));
      cluster.Settle(members, absl::Minutes(10));
      ASSERT_EQ(cluster.broken(), "") << "seed " << seed;
      EXPECT_EQ(cluster.totals().loads, loads) << "seed " << seed;
    }
    EXPECT_EQ(cluster.totals().discarded, 0U);
    EXPECT_EQ(cluster.totals().announced_again, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, HandOverSimulation, ::testing::Values(1, 2));

}  // namespace
}  // namespace engram::test

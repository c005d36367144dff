#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/unit/table_server/rebalance/simulated_cluster.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"
#include "tests/unit/table_server/rebalance/unreliable_source.h"

namespace engram::test {
namespace {

using Names = SimulatedCluster::Names;

void Erase(Names& names, const std::string& name) {
  names.erase(std::remove(names.begin(), names.end(), name), names.end());
}

struct Kind {
  std::string name;
  uint32_t replicas = 1;
  // One in a round while others hold what it holds, or any at any time.
  bool one_crashes = false;
  bool any_crash = false;
};

// Servers that follow a source while others join, leave, are taken out of it,
// restart and crash.
class ChangingCluster {
 public:
  ChangingCluster(const Kind& kind, uint64_t seed)
      : random_(seed),
        source_(random_),
        kind_(kind),
        replicas_(kind.replicas),
        cluster_(DrawSettings(), seed + 1) {
    if (kind_.any_crash) cluster_.AllowLosses();
    source_.Set(members_, cluster_.time().now());
    for (const std::string& name : members_) {
      cluster_.Run(random_.UpTo(absl::Seconds(2)));
      cluster_.Start(name);
    }
    Settle();
  }

  void Round() {
    may_crash_ = kind_.one_crashes || kind_.any_crash;
    const size_t changes = 1 + random_.Below(6);
    const absl::Duration most_between =
        random_.Chance(0.5) ? absl::Seconds(2) : absl::Seconds(20);
    for (size_t i = 0; i < changes && cluster_.broken().empty(); ++i) {
      ChangeMembers();
      for (const std::string& name : cluster_.Running()) {
        if (random_.Chance(0.3)) source_.Delay(name, absl::Seconds(5));
        if (random_.Chance(0.3)) source_.Confuse(name);
      }
      cluster_.Run(random_.UpTo(most_between));
    }
    Settle();
  }

  const SimulatedCluster& cluster() const { return cluster_; }
  const std::map<std::string, int>& changes() const { return changes_; }

 private:
  SimulatedCluster::Settings DrawSettings() {
    SimulatedCluster::Settings settings =
        SimulatedCluster::Settings::Draw(random_);
    settings.replicas = replicas_;
    const size_t count = replicas_ + random_.Below(4);
    for (size_t i = 0; i < count; ++i) members_.push_back(NewName());
    settings.source = [this](const std::string& server) {
      return source_.Answer(server, cluster_.time().now());
    };
    settings.membership.expected_servers = replicas_;
    settings.membership.stability_window =
        random_.Between(absl::ZeroDuration(), absl::Seconds(5));
    settings.membership.death_delay = absl::Minutes(1);
    settings.membership.absence_is_departure = random_.Chance(0.5);
    return settings;
  }
  std::string NewName() { return absl::StrCat("t", next_name_++); }

  void ChangeMembers() {
    switch (random_.Below(5)) {
      case 0:
        return Join();
      case 1:
        return TakeOut();
      case 2:
        return LeaveForGood();
      case 3:
        return Restart();
      default:
        return Crash();
    }
  }

  void Join() {
    if (members_.size() > 6) return;
    // Or one that left before comes back.
    std::string name = NewName();
    if (!gone_.empty() && random_.Chance(0.5)) {
      name = gone_.back();
      if (cluster_.Runs(name)) return;
      gone_.pop_back();
    }
    ++changes_["join"];
    members_.push_back(name);
    cluster_.Start(name);
    Tell();
  }
  // From the source; the server goes when it holds nothing any more.
  void TakeOut() {
    const std::string name = Any();
    if (!CanSpareOne() || name.empty()) return;
    ++changes_["taken out"];
    Erase(members_, name);
    cluster_.EndWhenEmpty(name);
    Tell();
  }
  void LeaveForGood() {
    const std::string name = Any();
    if (!CanSpareOne() || name.empty()) return;
    ++changes_["leave"];
    Erase(members_, name);
    left_.push_back(name);  // the source still names it
    cluster_.Leave(name);
  }
  void Restart() {
    const std::string name = Any();
    if (!restarting_.empty() || name.empty()) return;
    if (replicas_ == 1 && !CanSpareOne()) return;
    ++changes_["restart"];
    cluster_.Stop(name);
    StartAgain(name);
  }
  void StartAgain(const std::string& name) {
    restarting_ = name;
    cluster_.time().After(absl::Seconds(2), [this, name] {
      if (cluster_.Runs(name)) return StartAgain(name);
      cluster_.Start(name);
      restarting_.clear();
    });
  }
  void Crash() {
    const std::string name = Any();
    if (!may_crash_ || !restarting_.empty() || name.empty() ||
        !cluster_.CanLose(name)) {
      return;
    }
    ++changes_["crash"];
    may_crash_ = kind_.any_crash;
    cluster_.Kill(name);
    if (random_.Chance(0.3) && CanSpareOne()) {  // and is gone
      Erase(members_, name);
      dead_.push_back(name);
      return;
    }
    StartAgain(name);
  }

  bool CanSpareOne() const {
    return members_.size() > replicas_ + (restarting_.empty() ? 0 : 1);
  }
  // A member that runs and is to stay; "": none does.
  std::string Any() {
    Names names = members_;
    names.erase(std::remove_if(names.begin(), names.end(),
                               [&](const std::string& name) {
                                 return name == restarting_ ||
                                        !cluster_.Runs(name);
                               }),
                names.end());
    return names.empty() ? "" : names[random_.Below(names.size())];
  }
  void Tell() {
    Names names = members_;
    names.insert(names.end(), left_.begin(), left_.end());
    names.insert(names.end(), dead_.begin(), dead_.end());
    source_.Set(std::move(names), cluster_.time().now());
  }
  void Settle() {
    source_.Calm();
    Names members = members_;
    std::sort(members.begin(), members.end());
    for (int i = 0; i < 900 && !restarting_.empty(); ++i) {
      cluster_.Run(absl::Seconds(1));
    }
    cluster_.Settle(members, absl::Minutes(15));
    gone_.insert(gone_.end(), left_.begin(), left_.end());
    left_.clear();
    dead_.clear();
    Tell();
  }

  Random random_;
  UnreliableSource source_;
  const Kind kind_;
  const uint32_t replicas_;
  Names members_;
  Names left_;
  Names dead_;
  Names gone_;
  int next_name_ = 0;
  SimulatedCluster cluster_;
  bool may_crash_ = false;
  std::string restarting_;  // a server that stops and starts again
  std::map<std::string, int> changes_;
};

class ClusterSimulation : public ::testing::TestWithParam<Kind> {};

TEST_P(ClusterSimulation, SomebodyHoldsEveryPartitionWhileMembersChange) {
  std::map<std::string, int> changes;
  for (uint64_t seed = 0; seed < 3 * kSimulatedClusters / 10; ++seed) {
    ChangingCluster changing(GetParam(), seed);
    for (int i = 0; i < 2 && changing.cluster().broken().empty(); ++i) {
      changing.Round();
    }
    ASSERT_EQ(changing.cluster().broken(), "") << "seed " << seed;
    for (const auto& [kind, count] : changing.changes()) {
      changes[kind] += count;
    }
  }
  for (const auto& [kind, count] : changes) RecordProperty(kind, count);
  for (const char* kind : {"join", "leave", "restart", "taken out"}) {
    EXPECT_GT(changes[kind], kSimulatedClusters / 20) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ClusterSimulation,
                         ::testing::Values(Kind{.name = "OneReplica"},
                                           Kind{.name = "OneReplicaAndCrashes",
                                                .any_crash = true},
                                           Kind{.name = "TwoReplicasAndACrash",
                                                .replicas = 2,
                                                .one_crashes = true}),
                         [](const auto& info) { return info.param.name; });

TEST(RollingRestart, MovesNothing) {
  for (uint64_t seed = 0; seed < kSimulatedClusters / 20; ++seed) {
    Random random(seed);
    const Names names = {"a", "b", "c", "d"};
    SimulatedCluster::Settings settings =
        SimulatedCluster::Settings::Draw(random);
    settings.replicas = 2;
    settings.source = [&](const std::string&) { return Members(names); };
    settings.membership.expected_servers = 4;
    SimulatedCluster cluster(settings, seed);
    for (const std::string& name : names) cluster.Start(name);
    cluster.Settle(names, absl::Minutes(10));
    const uint64_t copies = cluster.totals().loads;
    for (const std::string& name : names) {
      cluster.Stop(name);
      for (int i = 0; i < 600 && cluster.Runs(name); ++i) {
        cluster.Run(absl::Seconds(1));
      }
      ASSERT_FALSE(cluster.Runs(name)) << "seed " << seed;
      cluster.Run(random.UpTo(absl::Seconds(30)));
      cluster.Start(name);
      cluster.Settle(names, absl::Minutes(10));
    }
    EXPECT_EQ(cluster.broken(), "") << "seed " << seed;
    EXPECT_EQ(cluster.totals().loads, 2 * copies);  // each its own, once more
    EXPECT_EQ(cluster.totals().withdrawn, 0U);
  }
}

}  // namespace
}  // namespace engram::test

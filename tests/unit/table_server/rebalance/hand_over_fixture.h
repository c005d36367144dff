#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HAND_OVER_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HAND_OVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "table_server/rebalance/cluster_view.h"
#include "table_server/rebalance/hand_over.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

using Refs = std::vector<PartitionRef>;

inline std::shared_ptr<const ClusterView> ViewOf(const std::string& self,
                                                 const Names& names,
                                                 uint32_t replicas = 1) {
  return ClusterView::Create(
             SmallManifest(),
             {.self = self, .members = Members(names), .replicas = replicas})
      .value();
}

// Server "a" and what the test lets it go through.
class HandOverTest : public ::testing::Test {
 protected:
  void SetView(const Names& names, uint32_t replicas = 1) {
    hand_over_.SetView(ViewOf("a", names, replicas));
  }
  Refs LoadAll() {
    Refs loaded;
    while (const auto ref = hand_over_.TakeLoad(now_)) {
      EXPECT_EQ(hand_over_.LoadEnded(*ref), HandOver::Loaded::kKeep);
      loaded.push_back(*ref);
    }
    return loaded;
  }
  // "a" held all and then saw others come.
  void HoldAllThen(const Names& names, uint32_t replicas = 1) {
    SetView({"a"}, replicas);
    LoadAll();
    SetView(names, replicas);
  }
  // Every peer asked acknowledges all it is asked about. How many were asked.
  size_t AcknowledgeAll() {
    const std::vector<HandOver::Ask> asks = hand_over_.Asks();
    for (const HandOver::Ask& ask : asks) {
      hand_over_.Acknowledged(ask.peer, ask.epoch, ask.partitions, now_);
    }
    return asks.size();
  }
  HandOver::Actions Advance(absl::Duration by = absl::ZeroDuration()) {
    now_ += by;
    return hand_over_.Advance(now_);
  }
  // "a" held all, and has withdrawn what "b", which came, owns. All of that.
  Refs HandOverToB() {
    HoldAllThen({"a", "b"});
    const Refs moved = OwnedBy("b", {"a", "b"});
    AcknowledgeAll();
    Advance(options_.announce_linger);
    AcknowledgeAll();
    EXPECT_EQ(Advance().withdraw, moved);
    return moved;
  }
  // What nobody but `name` owns in the view of these.
  static Refs OwnedBy(const std::string& name, const Names& names) {
    return ViewOf(name, names)->owned();
  }

  absl::Time now_ = absl::UnixEpoch();
  const HandOver::Options options_{};
  HandOver hand_over_{SmallManifest(), options_};
};

inline void ExpectNothing(const HandOver::Actions& actions) {
  EXPECT_TRUE(actions.announce.empty());
  EXPECT_TRUE(actions.withdraw.empty());
  EXPECT_TRUE(actions.drop.empty());
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HAND_OVER_FIXTURE_H_

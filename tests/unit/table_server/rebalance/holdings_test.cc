#include "table_server/rebalance/holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PartitionRef kOne{LayerId{1}, PartitionId{3}};
constexpr PartitionRef kTwo{LayerId{14}, PartitionId{3}};
constexpr PartitionRef kThree{LayerId{14}, PartitionId{6}};

std::shared_ptr<const ClusterView> ViewOf(const std::vector<std::string>& names,
                                          uint32_t replicas) {
  return ClusterView::Create(test::SmallManifest(),
                             {.self = "s",
                              .members = test::Members(names),
                              .replicas = replicas})
      .value();
}

// Server "s"; all that is asked about is owned by "s", "a" and "b".
class HoldingsTest : public ::testing::Test {
 protected:
  Holdings::Report Holds(const std::vector<PartitionRef>& held) const {
    return {.ready = true,
            .view_digest = view_->digest(),
            .heard = now_,
            .held = held};
  }
  void Set(const std::string& peer, const std::vector<PartitionRef>& held) {
    holdings_.Set(peer, Holds(held));
  }
  std::vector<PartitionRef> OnlyHere() const {
    return holdings_.OnlyHere({kThree, kOne, kTwo}, *view_, now_);
  }

  const std::shared_ptr<const ClusterView> view_ = ViewOf({"s", "a", "b"}, 3);
  Holdings holdings_{test::SmallManifest()};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(HoldingsTest, NobodyElse) {
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kOne, kTwo));
  EXPECT_THAT(holdings_.HoldersOf(kOne, now_), IsEmpty());
}

TEST_F(HoldingsTest, WhatNobodyElseHolds) {
  const std::vector<PartitionRef> all = {kOne, kThree, kTwo};
  EXPECT_THAT(holdings_.HeldByNone({}, now_), IsEmpty());
  EXPECT_THAT(holdings_.HeldByNone(all, now_), ElementsAre(kOne, kThree, kTwo));
  Set("a", {kOne});
  Set("b", {kTwo});
  EXPECT_THAT(holdings_.HeldByNone(all, now_), ElementsAre(kThree));
  EXPECT_THAT(holdings_.HeldByNone({kOne}, now_ + absl::Nanoseconds(1)),
              ElementsAre(kOne));
  Holdings::Report draining = Holds({kTwo});
  draining.draining = true;
  holdings_.Set("b", draining);
  EXPECT_THAT(holdings_.HeldByNone(all, now_), ElementsAre(kThree, kTwo));
}

TEST_F(HoldingsTest, PeersHold) {
  Set("b", {kOne});
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kTwo));
  Set("a", {kOne, kThree});
  EXPECT_THAT(OnlyHere(), ElementsAre(kTwo));
  EXPECT_THAT(holdings_.HoldersOf(kOne, now_), ElementsAre("a", "b"));
  EXPECT_THAT(holdings_.HoldersOf(kThree, now_), ElementsAre("a"));
}

TEST_F(HoldingsTest, WhatAPeerSaidLastCounts) {
  Set("a", {kOne, kTwo});
  Set("a", {kThree});
  EXPECT_THAT(OnlyHere(), ElementsAre(kOne, kTwo));
  holdings_.Remove("a");
  holdings_.Remove("nobody");
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kOne, kTwo));
}

TEST_F(HoldingsTest, APeerThatIsNotReadyCanBeReadFromButNotReliedOn) {
  Holdings::Report report = Holds({kOne});
  report.ready = false;
  holdings_.Set("a", report);
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kOne, kTwo));
  EXPECT_THAT(holdings_.HoldersOf(kOne, now_), ElementsAre("a"));
}

TEST_F(HoldingsTest, APeerThatDrainsIsTheLastChoice) {
  Holdings::Report report = Holds({kOne, kTwo});
  report.draining = true;
  holdings_.Set("a", report);
  Set("b", {kOne});
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kTwo));
  EXPECT_THAT(holdings_.HoldersOf(kOne, now_), ElementsAre("b"));
  EXPECT_THAT(holdings_.HoldersOf(kTwo, now_), ElementsAre("a"));
}

// It may be giving it up, since this server holds it.
TEST_F(HoldingsTest, APeerThatDoesNotOwnItCannotBeReliedOn) {
  Set("a", {kOne});
  const auto without = ViewOf({"s", "b"}, 2);
  Holdings::Report report = Holds({kOne});
  report.view_digest = without->digest();
  holdings_.Set("a", report);
  EXPECT_THAT(holdings_.OnlyHere({kOne}, *without, now_), ElementsAre(kOne));
  holdings_.Set("b", report);
  EXPECT_THAT(holdings_.OnlyHere({kOne}, *without, now_), IsEmpty());
  const auto single = ViewOf({"s", "b"}, 1);
  report.view_digest = single->digest();
  report.held = {kOne, kTwo, kThree};
  holdings_.Set("b", report);
  for (const PartitionRef& ref : {kOne, kTwo, kThree}) {
    const bool owns_it =
        !single->Owns(ref.layer == LayerId{1} ? 0 : 1, ref.partition);
    EXPECT_EQ(holdings_.OnlyHere({ref}, *single, now_).empty(), owns_it);
  }
}

TEST_F(HoldingsTest, APeerOfAnotherViewCannotBeReliedOn) {
  Holdings::Report report = Holds({kOne});
  report.view_digest = ViewOf({"s", "a"}, 3)->digest();
  holdings_.Set("a", report);
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kOne, kTwo));
  report.view_digest = "";
  holdings_.Set("a", report);
  EXPECT_THAT(OnlyHere(), ElementsAre(kThree, kOne, kTwo));
  EXPECT_THAT(holdings_.HoldersOf(kOne, now_), ElementsAre("a"));
}

TEST_F(HoldingsTest, WithoutMembersAllIsOnlyHere) {
  const auto nobody = ViewOf({}, 1);
  Holdings::Report report = Holds({kOne});
  report.view_digest = nobody->digest();
  holdings_.Set("a", report);
  EXPECT_THAT(holdings_.OnlyHere({kOne}, *nobody, now_), ElementsAre(kOne));
}

TEST_F(HoldingsTest, APeerThatIsSilentHoldsNothing) {
  Set("a", {kOne});
  const absl::Time later = now_ + absl::Nanoseconds(1);
  EXPECT_THAT(holdings_.OnlyHere({kOne}, *view_, later), ElementsAre(kOne));
  EXPECT_THAT(holdings_.HoldersOf(kOne, later), IsEmpty());
}

TEST_F(HoldingsTest, PartitionsThatTheTableLacksAreIgnored) {
  const PartitionRef no_layer{LayerId{2}, PartitionId{0}};
  const PartitionRef no_partition{LayerId{14}, PartitionId{8}};
  Set("a", {no_layer, no_partition, kOne});
  EXPECT_THAT(holdings_.OnlyHere({no_layer, no_partition, kOne}, *view_, now_),
              IsEmpty());
  EXPECT_THAT(holdings_.HoldersOf(no_layer, now_), IsEmpty());
  EXPECT_THAT(holdings_.HoldersOf(no_partition, now_), IsEmpty());
}

}  // namespace
}  // namespace engram

#include "table_server/rebalance/exit_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::Members;
using test::Names;
using test::SmallManifest;
using Advice = ExitCheck::Advice;

constexpr absl::Duration kSilentAfter = absl::Seconds(4);
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kGiveUpAfter = absl::Seconds(10);

// Server "s", which holds what it owns and is about to end.
class ExitCheckTest : public ::testing::Test {
 protected:
  // Its peers are those of `names` and `others`.
  void Follow(const Names& names, uint32_t replicas, const Names& others = {}) {
    view_ = ClusterView::Create(
                SmallManifest(),
                {.self = "s", .members = Members(names), .replicas = replicas})
                .value();
    Names peers = others;
    for (const std::string& name : names) {
      if (name != "s") peers.push_back(name);
    }
    std::sort(peers.begin(), peers.end());
    peers_.Retain(Members(peers));
    if (held_.empty()) held_ = view_->owned();
  }
  v1::ExchangeResponse Ready() const {
    v1::ExchangeResponse response;
    response.set_ready(true);
    response.set_view_digest(view_->digest());
    return response;
  }
  void Hear(const std::string& name, const v1::ExchangeResponse& response,
            std::vector<PartitionRef> held = {}) {
    peers_.Heard(name, response, std::move(held), now_);
  }
  void HearThatItGoes(const std::string& name) {
    v1::ExchangeResponse response = Ready();
    response.set_draining(true);
    Hear(name, response, held_);
  }
  ExitCheck::Finding Look() const { return check_.Look(held_, *view_, now_); }
  Advice Advised() const { return Look().advice; }

  const absl::Time began_ = absl::UnixEpoch();
  absl::Time now_ = began_;
  std::shared_ptr<const ClusterView> view_;
  std::vector<PartitionRef> held_;
  KnownPeers peers_{SmallManifest()};
  const ExitCheck check_{SmallManifest(),
                         peers_,
                         {.self = "s",
                          .began = began_,
                          .silent_after = kSilentAfter,
                          .patience = kPatience,
                          .give_up_after = kGiveUpAfter}};
};

TEST_F(ExitCheckTest, WhoHoldsNothingEnds) {
  Follow({"s"}, 1);
  held_.clear();
  EXPECT_EQ(Advised(), Advice::kEnd);
}

TEST_F(ExitCheckTest, TheOnlyServerDoesNotWait) {
  Follow({"s"}, 1);
  const ExitCheck::Finding finding = Look();
  EXPECT_EQ(finding.advice, Advice::kNobodyElse);
  EXPECT_EQ(finding.only_here, held_.size());
  EXPECT_EQ(finding.possible_takers, 0U);
}

TEST_F(ExitCheckTest, WithOneReplicaItLeavesAtOnceAndEndsWhenOthersHoldAll) {
  Follow({"a", "s"}, 1);
  EXPECT_EQ(Advised(), Advice::kLeave);
  Hear("a", Ready());
  EXPECT_EQ(Advised(), Advice::kLeave);
  Follow({"a"}, 1);
  EXPECT_EQ(Advised(), Advice::kWait);
  Hear("a", Ready(), {held_.front()});
  EXPECT_EQ(Look().only_here, held_.size() - 1);
  Hear("a", Ready(), held_);
  EXPECT_EQ(Advised(), Advice::kEnd);
}

TEST_F(ExitCheckTest, WithTwoReplicasItEndsWhenTheOtherOwnersHoldAll) {
  Follow({"a", "s"}, 2);
  EXPECT_EQ(Advised(), Advice::kWait);  // for the first answer
  Hear("a", Ready(), held_);
  EXPECT_EQ(Advised(), Advice::kEnd);
}

TEST_F(ExitCheckTest, WhatWasSaidBeforeDoesNotCount) {
  Follow({"a", "s"}, 2);
  now_ -= absl::Nanoseconds(1);
  Hear("a", Ready(), held_);
  now_ = began_;
  EXPECT_EQ(Advised(), Advice::kWait);
}

TEST_F(ExitCheckTest, WaitsForAnOwnerThatLoads) {
  Follow({"a", "s"}, 2);
  v1::ExchangeResponse loading = Ready();
  loading.set_ready(false);
  for (int i = 0; i < 100; ++i) {
    now_ += absl::Seconds(1);
    Hear("a", loading);
    EXPECT_EQ(Advised(), Advice::kWait);
  }
  Hear("a", Ready(), held_);
  EXPECT_EQ(Advised(), Advice::kEnd);
}

TEST_F(ExitCheckTest, LeavesWhenTheOtherOwnerIsSilentAndSomebodyElseIsThere) {
  Follow({"a", "s"}, 2, {"b"});
  now_ += kPatience - absl::Nanoseconds(1);
  Hear("b", Ready());
  EXPECT_EQ(Advised(), Advice::kWait);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kLeave);
  Hear("a", Ready());
  EXPECT_EQ(Advised(), Advice::kWait);
  now_ += kPatience;
  Hear("b", Ready());
  EXPECT_EQ(Advised(), Advice::kWait);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kLeave);
}

TEST_F(ExitCheckTest, WhatASilentPeerHeldDoesNotCountForLong) {
  Follow({"a", "s"}, 2);
  Hear("a", Ready(), held_);
  now_ += kSilentAfter;
  EXPECT_EQ(Advised(), Advice::kEnd);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kWait);
}

TEST_F(ExitCheckTest, LeavesWhenTheOtherOwnerGoesToo) {
  Follow({"a", "s"}, 2, {"b"});
  HearThatItGoes("a");
  EXPECT_EQ(Advised(), Advice::kLeave);
  Follow({"a", "b"}, 2);
  EXPECT_EQ(Advised(), Advice::kWait);  // "b" may
  Hear("b", Ready(), held_);
  EXPECT_EQ(Advised(), Advice::kEnd);
}

TEST_F(ExitCheckTest, WhenAllGoNobodyWaits) {
  Follow({"a", "b", "s"}, 2);
  HearThatItGoes("a");
  EXPECT_NE(Advised(), Advice::kNobodyElse);  // "b" has not answered yet
  EXPECT_EQ(Look().possible_takers, 1U);
  HearThatItGoes("b");
  EXPECT_EQ(Advised(), Advice::kNobodyElse);
}

TEST_F(ExitCheckTest, WhenAllAreSilentItGivesUp) {
  Follow({"a", "b", "s"}, 2);
  now_ += kGiveUpAfter - absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kLeave);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kNobodyElse);
  Hear("a", Ready());
  EXPECT_NE(Advised(), Advice::kNobodyElse);
  now_ += kGiveUpAfter;
  EXPECT_NE(Advised(), Advice::kNobodyElse);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Advised(), Advice::kNobodyElse);
}

TEST_F(ExitCheckTest, APeerOfAnotherViewIsWaitedFor) {
  Follow({"a", "s"}, 2);
  v1::ExchangeResponse other = Ready();
  other.set_view_digest("other");
  Hear("a", other, held_);
  EXPECT_EQ(Advised(), Advice::kWait);
}

}  // namespace
}  // namespace engram

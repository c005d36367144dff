// Partitions that are held and turn out to be damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/table_server/rebalance/hand_over_fixture.h"

namespace engram::test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using HandOverDamageTest = HandOverTest;

TEST_F(HandOverDamageTest, WhatIsOwnedIsLoadedAnewOnceItIsFree) {
  SetView({"a", "b"});
  const Refs owned = LoadAll();
  const PartitionRef ref = owned[1];
  const std::string digest = hand_over_.view()->digest();
  ASSERT_EQ(hand_over_.Acknowledge(digest, owned), owned);
  EXPECT_TRUE(hand_over_.GiveUpDamaged(ref, now_));
  EXPECT_FALSE(hand_over_.GiveUpDamaged(ref, now_));  // told again
  // Peers that are about to rely on it hear of it.
  EXPECT_THAT(hand_over_.Acknowledge(digest, owned), Not(Contains(ref)));
  EXPECT_THAT(hand_over_.HeldPartitions(), Not(Contains(ref)));
  EXPECT_EQ(hand_over_.counts().to_load, 1U);
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);
  ExpectNothing(Advance(absl::Hours(1)));
  hand_over_.Dropped(ref);
  EXPECT_FALSE(hand_over_.GiveUpDamaged(ref, now_));
  EXPECT_EQ(hand_over_.TakeLoad(now_), ref);
  EXPECT_FALSE(hand_over_.GiveUpDamaged(ref, now_));
  EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kKeep);
  EXPECT_EQ(hand_over_.Acknowledge(digest, owned), owned);
  EXPECT_TRUE(hand_over_.GiveUpDamaged(ref, now_));  // once more
}

TEST_F(HandOverDamageTest, WhatIsOnItsWayToOthersIsGone) {
  HoldAllThen({"a", "b"});
  const Refs moved = OwnedBy("b", {"a", "b"});
  ASSERT_THAT(moved, SizeIs(::testing::Ge(4U)));
  EXPECT_TRUE(hand_over_.GiveUpDamaged(moved[0], now_));  // asked about
  ASSERT_THAT(hand_over_.Asks(), SizeIs(1));
  EXPECT_THAT(hand_over_.Asks()[0].partitions, Not(Contains(moved[0])));
  AcknowledgeAll();
  EXPECT_TRUE(hand_over_.GiveUpDamaged(moved[1], now_));  // taken over
  Advance(options_.announce_linger);
  EXPECT_TRUE(hand_over_.GiveUpDamaged(moved[2], now_));  // to be confirmed
  AcknowledgeAll();
  const Refs rest(moved.begin() + 3, moved.end());
  EXPECT_EQ(Advance().withdraw, rest);
  EXPECT_TRUE(hand_over_.GiveUpDamaged(moved[3], now_));  // answered for
  EXPECT_EQ(Advance(options_.answer_linger).drop,
            Refs(moved.begin() + 4, moved.end()));
  for (const PartitionRef& ref : moved) hand_over_.Dropped(ref);
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);
  EXPECT_THAT(hand_over_.Asks(), IsEmpty());
  EXPECT_EQ(hand_over_.counts().lingering, 0U);
}

// An acknowledgement that came while it was given up counts for nothing.
TEST_F(HandOverDamageTest, ALateAcknowledgementIsIgnored) {
  HoldAllThen({"a", "b"});
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  const PartitionRef ref = asks[0].partitions[0];
  EXPECT_TRUE(hand_over_.GiveUpDamaged(ref, now_));
  hand_over_.Acknowledged("b", asks[0].epoch, asks[0].partitions, now_);
  SetView({"a"});
  hand_over_.Dropped(ref);
  EXPECT_EQ(hand_over_.TakeLoad(now_), ref);
}

// As by a disk that damages whatever is put on it.
TEST_F(HandOverDamageTest, WhatIsDamagedAgainAndAgainIsLoadedLaterAndLater) {
  SetView({"a"});
  const PartitionRef ref = LoadAll()[1];
  const auto wait_after_damage = [&] {
    EXPECT_TRUE(hand_over_.GiveUpDamaged(ref, now_));
    hand_over_.Dropped(ref);
    const absl::Time began = now_;
    const bool at_once = !hand_over_.PartitionsToLoad().empty();
    while (hand_over_.TakeLoad(now_) != ref) {
      EXPECT_FALSE(at_once);
      now_ += options_.retry_load;
    }
    EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kKeep);
    return now_ - began;
  };
  const auto expect_delays_from_the_beginning = [&] {
    EXPECT_EQ(wait_after_damage(), absl::ZeroDuration());
    for (const int times : {1, 2, 4, 8}) {
      EXPECT_EQ(wait_after_damage(), times * options_.retry_load);
    }
  };
  expect_delays_from_the_beginning();
  for (int i = 0; i < 10; ++i) wait_after_damage();
  EXPECT_EQ(wait_after_damage(), options_.longest_retry_damaged);
  now_ += options_.damage_forgotten_after / 2;
  EXPECT_EQ(wait_after_damage(), options_.longest_retry_damaged);
  now_ += options_.damage_forgotten_after;
  expect_delays_from_the_beginning();
}

TEST_F(HandOverDamageTest, OnlyWhatIsDamagedWaits) {
  SetView({"a"});
  const Refs all = LoadAll();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(hand_over_.GiveUpDamaged(all[1], now_));
    hand_over_.Dropped(all[1]);
    if (i == 0) LoadAll();
  }
  ASSERT_TRUE(hand_over_.GiveUpDamaged(all[2], now_));
  hand_over_.Dropped(all[2]);
  EXPECT_EQ(hand_over_.PartitionsToLoad(), Refs{all[2]});
  EXPECT_EQ(LoadAll(), Refs{all[2]});
  EXPECT_EQ(hand_over_.counts().to_load, 1U);
}

}  // namespace
}  // namespace engram::test

#include "table_server/rebalance/hand_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/table_server/rebalance/hand_over_fixture.h"

namespace engram::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(HandOverTest, BeforeTheFirstView) {
  EXPECT_EQ(hand_over_.view(), nullptr);
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);
  EXPECT_THAT(hand_over_.Asks(), IsEmpty());
  hand_over_.Acknowledged("b", 0, {{LayerId{1}, PartitionId{0}}}, now_);
  EXPECT_THAT(hand_over_.Acknowledge("", {{LayerId{1}, PartitionId{0}}}),
              IsEmpty());
  ExpectNothing(Advance());
  EXPECT_THAT(hand_over_.HeldPartitions(), IsEmpty());
  EXPECT_EQ(hand_over_.counts().owned, 0U);
}

TEST_F(HandOverTest, OwnersAreAskedAboutWhatIsToBeFreed) {
  HoldAllThen({"a", "b", "c"});
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  ASSERT_THAT(asks, SizeIs(2));
  EXPECT_EQ(asks[0].peer, "b");
  EXPECT_EQ(asks[0].partitions, OwnedBy("b", {"a", "b", "c"}));
  EXPECT_EQ(asks[1].peer, "c");
  EXPECT_EQ(asks[1].partitions, OwnedBy("c", {"a", "b", "c"}));
  EXPECT_EQ(asks[0].digest, hand_over_.view()->digest());
  EXPECT_EQ(asks[0].epoch, asks[1].epoch);
  EXPECT_EQ(hand_over_.counts().to_free,
            asks[0].partitions.size() + asks[1].partitions.size());
  ExpectNothing(Advance(absl::Hours(1)));
  EXPECT_EQ(hand_over_.counts().held, kAll);
}

TEST_F(HandOverTest, FromAcknowledgedToGone) {
  HoldAllThen({"a", "b"});
  const Refs moved = OwnedBy("b", {"a", "b"});
  EXPECT_EQ(AcknowledgeAll(), 1U);
  EXPECT_THAT(hand_over_.Asks(), IsEmpty());
  EXPECT_EQ(hand_over_.counts().to_free, 0U);
  EXPECT_EQ(hand_over_.counts().lingering, moved.size());
  ExpectNothing(Advance(options_.announce_linger - absl::Nanoseconds(1)));
  // Asked once more.
  ExpectNothing(Advance(absl::Nanoseconds(1)));
  EXPECT_EQ(hand_over_.counts().held, kAll);
  EXPECT_EQ(AcknowledgeAll(), 1U);
  EXPECT_EQ(hand_over_.counts().held, kAll);
  EXPECT_EQ(Advance().withdraw, moved);
  EXPECT_EQ(hand_over_.HeldPartitions(), OwnedBy("a", {"a", "b"}));
  ExpectNothing(Advance(options_.answer_linger - absl::Nanoseconds(1)));
  EXPECT_EQ(Advance(absl::Nanoseconds(1)).drop, moved);
  EXPECT_EQ(hand_over_.counts().lingering, moved.size());
  for (const PartitionRef& ref : moved) hand_over_.Dropped(ref);
  EXPECT_EQ(hand_over_.counts().lingering, 0U);
  ExpectNothing(Advance(absl::Hours(1)));
  EXPECT_EQ(hand_over_.counts().held, hand_over_.counts().owned);
}

// The taker crashed while clients were to hear of it.
TEST_F(HandOverTest, NothingIsGivenUpIfTheOwnerDoesNotConfirm) {
  HoldAllThen({"a", "b"});
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  AcknowledgeAll();
  Advance(options_.announce_linger);
  for (int i = 0; i < 100; ++i) ExpectNothing(Advance(absl::Seconds(10)));
  EXPECT_EQ(hand_over_.counts().held, kAll);
  EXPECT_EQ(hand_over_.Asks().at(0).partitions, asks.at(0).partitions);
}

TEST_F(HandOverTest, ConfirmationsThatAreOldDoNotCount) {
  HoldAllThen({"b", "c"}, 2);
  AcknowledgeAll();
  Advance(options_.announce_linger);
  const auto confirm = [&](const std::string& peer) {
    for (const HandOver::Ask& ask : hand_over_.Asks()) {
      if (ask.peer != peer) continue;
      hand_over_.Acknowledged(peer, ask.epoch, ask.partitions, now_);
    }
  };
  confirm("b");
  ExpectNothing(Advance(options_.confirm_within));
  confirm("c");  // but "b" may have crashed since
  ExpectNothing(Advance());
  confirm("b");
  EXPECT_THAT(Advance().withdraw, SizeIs(kAll));
}

TEST_F(HandOverTest, AnOwnerThatWasStartedAgainLingersAnew) {
  for (const bool confirming : {false, true}) {
    HoldAllThen({"a", "b", "c"});
    const Refs of_b = OwnedBy("b", {"a", "b", "c"});
    const Refs of_c = OwnedBy("c", {"a", "b", "c"});
    AcknowledgeAll();
    ExpectNothing(Advance(confirming ? options_.announce_linger
                                     : options_.announce_linger / 2));
    hand_over_.PeerRestarted("b");
    EXPECT_EQ(hand_over_.counts().to_free, of_b.size());
    AcknowledgeAll();
    EXPECT_EQ(Advance().withdraw, confirming ? of_c : Refs());
    ExpectNothing(Advance(options_.announce_linger - absl::Nanoseconds(1)));
  }
}

TEST_F(HandOverTest, AcknowledgementsOfAProcessThatEndedDoNotCount) {
  HoldAllThen({"b", "c"}, 2);
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  hand_over_.Acknowledged("b", asks[0].epoch, asks[0].partitions, now_);
  hand_over_.PeerRestarted("b");
  hand_over_.Acknowledged("c", asks[1].epoch, asks[1].partitions, now_);
  EXPECT_EQ(hand_over_.counts().to_free, kAll);
  hand_over_.PeerRestarted("nobody");
  EXPECT_EQ(AcknowledgeAll(), 1U);
  EXPECT_EQ(hand_over_.counts().to_free, 0U);
}

TEST_F(HandOverTest, AllOwnersMustAcknowledge) {
  HoldAllThen({"b", "c"}, 2);
  std::vector<HandOver::Ask> asks = hand_over_.Asks();
  ASSERT_THAT(asks, SizeIs(2));
  hand_over_.Acknowledged("b", asks[0].epoch, asks[0].partitions, now_);
  hand_over_.Acknowledged("b", asks[0].epoch, asks[0].partitions, now_);
  EXPECT_EQ(hand_over_.counts().to_free, kAll);
  asks = hand_over_.Asks();
  ASSERT_THAT(asks, SizeIs(1));
  EXPECT_EQ(asks[0].peer, "c");
  hand_over_.Acknowledged("c", asks[0].epoch, {asks[0].partitions[3]}, now_);
  EXPECT_EQ(hand_over_.counts().to_free, kAll - 1);
  EXPECT_EQ(hand_over_.counts().lingering, 1U);
  EXPECT_THAT(hand_over_.Asks().at(0).partitions, SizeIs(kAll - 1));
}

TEST_F(HandOverTest, WhatWasNotAskedIsIgnored) {
  HoldAllThen({"a", "b", "c"});
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  const uint64_t epoch = asks[0].epoch;
  const Refs owned = OwnedBy("a", {"a", "b", "c"});
  hand_over_.Acknowledged("b", epoch - 1, asks[0].partitions, now_);
  hand_over_.Acknowledged("b", epoch + 1, asks[0].partitions, now_);
  hand_over_.Acknowledged("b", epoch, asks[1].partitions, now_);
  hand_over_.Acknowledged("b", epoch, owned, now_);
  hand_over_.Acknowledged("a", epoch, owned, now_);
  hand_over_.Acknowledged("nobody", epoch, asks[0].partitions, now_);
  hand_over_.Acknowledged("b", epoch,
                          {{LayerId{2}, PartitionId{0}},
                           {LayerId{1}, PartitionId{7}},
                           {LayerId{14}, PartitionId{4'000'000'000}}},
                          now_);
  EXPECT_EQ(hand_over_.counts().lingering, 0U);
  EXPECT_EQ(hand_over_.counts().held, kAll);
}

TEST_F(HandOverTest, ANewViewAsksAnew) {
  HoldAllThen({"a", "b"});
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  SetView({"a", "b"});
  hand_over_.Acknowledged("b", asks[0].epoch, asks[0].partitions, now_);
  EXPECT_EQ(hand_over_.counts().lingering, 0U);
  EXPECT_GT(hand_over_.Asks().at(0).epoch, asks[0].epoch);
  EXPECT_EQ(hand_over_.Asks().at(0).partitions, asks[0].partitions);
}

// In every state before the withdrawal.
TEST_F(HandOverTest, ANewViewStopsTheHandOver) {
  for (const int steps : {1, 2, 3}) {
    HoldAllThen({"a", "b"});
    const uint64_t to_free = hand_over_.counts().to_free;
    AcknowledgeAll();
    if (steps > 1) ExpectNothing(Advance(options_.announce_linger));
    if (steps > 2) AcknowledgeAll();
    EXPECT_EQ(hand_over_.counts().lingering, to_free);
    SetView({"a", "b"});
    EXPECT_EQ(hand_over_.counts().lingering, 0U);
    EXPECT_EQ(hand_over_.counts().to_free, to_free);
    ExpectNothing(Advance(absl::Hours(1)));
    EXPECT_THAT(hand_over_.Asks(), SizeIs(1));
  }
}

TEST_F(HandOverTest, WithdrawnAndOwnedAgain) {
  const Refs moved = HandOverToB();
  SetView({"a"});
  const std::string digest = hand_over_.view()->digest();
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);  // no copy
  EXPECT_THAT(hand_over_.Acknowledge(digest, moved), IsEmpty());
  const HandOver::Actions actions = Advance();
  EXPECT_EQ(actions.announce, moved);
  EXPECT_THAT(actions.withdraw, IsEmpty());
  EXPECT_THAT(actions.drop, IsEmpty());
  EXPECT_EQ(hand_over_.Acknowledge(digest, moved), moved);
  EXPECT_EQ(hand_over_.counts().held, kAll);
  ExpectNothing(Advance(absl::Hours(1)));
}

TEST_F(HandOverTest, WithdrawnStaysWithdrawnInAViewThatDoesNotOwnIt) {
  const Refs moved = HandOverToB();
  SetView({"a"});
  SetView({"a", "b"});
  ExpectNothing(Advance());
  EXPECT_EQ(Advance(options_.answer_linger).drop, moved);
}

TEST_F(HandOverTest, WhatIsBeingFreedIsLoadedAnew) {
  HoldAllThen({"b"});
  AcknowledgeAll();
  Advance(options_.announce_linger);
  AcknowledgeAll();
  Advance();
  const Refs dropped = Advance(options_.answer_linger).drop;
  ASSERT_THAT(dropped, SizeIs(kAll));
  SetView({"a"});
  ExpectNothing(Advance());
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);
  EXPECT_EQ(hand_over_.counts().to_load, kAll);
  hand_over_.Dropped(dropped[4]);
  EXPECT_EQ(hand_over_.TakeLoad(now_), dropped[4]);
}

TEST_F(HandOverTest, WithoutOwnersNothingIsGivenUp) {
  HoldAllThen({});
  EXPECT_THAT(hand_over_.Asks(), IsEmpty());
  EXPECT_EQ(hand_over_.counts().to_free, kAll);
  const uint64_t epoch = 2;
  hand_over_.Acknowledged("a", epoch, hand_over_.HeldPartitions(), now_);
  hand_over_.Acknowledged("", epoch, hand_over_.HeldPartitions(), now_);
  ExpectNothing(Advance(absl::Hours(1)));
  EXPECT_EQ(hand_over_.counts().held, kAll);
}

TEST_F(HandOverTest, AcknowledgesWhatItHoldsAndOwns) {
  SetView({"a", "b"});
  const std::string digest = hand_over_.view()->digest();
  const Refs owned = OwnedBy("a", {"a", "b"});
  ASSERT_GE(owned.size(), 3U);
  Refs asked = hand_over_.view()->owned();
  const Refs others = OwnedBy("b", {"a", "b"});
  asked.insert(asked.end(), others.begin(), others.end());
  asked.push_back({LayerId{3}, PartitionId{0}});
  asked.push_back({LayerId{14}, PartitionId{8}});
  EXPECT_THAT(hand_over_.Acknowledge(digest, asked), IsEmpty());
  const PartitionRef ref = *hand_over_.TakeLoad(now_);
  EXPECT_THAT(hand_over_.Acknowledge(digest, asked), IsEmpty());
  hand_over_.LoadEnded(ref);
  EXPECT_THAT(hand_over_.Acknowledge(digest, asked), ElementsAre(ref));
  LoadAll();
  EXPECT_EQ(hand_over_.Acknowledge(digest, asked), owned);
  EXPECT_THAT(hand_over_.Acknowledge("", asked), IsEmpty());
  EXPECT_THAT(hand_over_.Acknowledge(ViewOf("b", {"b"})->digest(), asked),
              IsEmpty());
}

TEST_F(HandOverTest, DoesNotAcknowledgeWhatItWantsToFree) {
  HoldAllThen({"a", "b"});
  EXPECT_THAT(hand_over_.Acknowledge(hand_over_.view()->digest(),
                                     OwnedBy("b", {"a", "b"})),
              IsEmpty());
}

}  // namespace
}  // namespace engram::test

// Loads, threads, and the size of the full table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/table_server/rebalance/hand_over_fixture.h"

namespace engram::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using HandOverLoadTest = HandOverTest;

TEST_F(HandOverLoadTest, LoadsWhatIsOwnedInOrder) {
  SetView({"a", "b"});
  const Refs owned = OwnedBy("a", {"a", "b"});
  EXPECT_EQ(hand_over_.counts().owned, owned.size());
  EXPECT_EQ(hand_over_.counts().to_load, owned.size());
  const auto first = hand_over_.TakeLoad(now_);
  EXPECT_EQ(first, owned.front());
  EXPECT_EQ(hand_over_.counts().loading, 1U);
  EXPECT_EQ(hand_over_.counts().to_load, owned.size());
  EXPECT_THAT(hand_over_.HeldPartitions(), IsEmpty());
  EXPECT_EQ(hand_over_.LoadEnded(*first), HandOver::Loaded::kKeep);
  EXPECT_THAT(hand_over_.HeldPartitions(), ElementsAre(*first));
  EXPECT_THAT(LoadAll(), ElementsAreArray(owned.begin() + 1, owned.end()));
  EXPECT_EQ(hand_over_.counts().held, owned.size());
  EXPECT_EQ(hand_over_.counts().to_load, 0U);
  EXPECT_EQ(hand_over_.counts().loading, 0U);
  EXPECT_EQ(hand_over_.HeldPartitions(), owned);
}

TEST_F(HandOverLoadTest, WhatIsToBeFirstIsLoadedFirst) {
  SetView({"a"});
  const Refs owned = OwnedBy("a", {"a"});
  EXPECT_EQ(hand_over_.PartitionsToLoad(), owned);
  const PartitionRef failed = *hand_over_.TakeLoad(now_);
  hand_over_.LoadFailed(failed, now_);
  const PartitionRef last = owned.back();
  hand_over_.LoadFirst({failed, last, last});
  EXPECT_EQ(hand_over_.TakeLoad(now_), last);
  EXPECT_EQ(hand_over_.TakeLoad(now_), owned[1]);
  hand_over_.LoadEnded(last);
  // Neither what is there nor what failed.
  EXPECT_THAT(hand_over_.PartitionsToLoad(),
              ElementsAreArray(owned.begin() + 1, owned.end() - 1));
}

TEST_F(HandOverLoadTest, FailedLoadsWaitLongerEachTime) {
  SetView({"a"});
  const PartitionRef first = *hand_over_.TakeLoad(now_);
  hand_over_.LoadFailed(first, now_);
  EXPECT_EQ(LoadAll().size(), kAll - 1);  // the others first
  EXPECT_EQ(hand_over_.counts().to_load, 1U);
  absl::Duration delay = options_.retry_load;
  for (int i = 0; i < 12; ++i) {
    const absl::Time retry = now_ + delay;
    EXPECT_EQ(hand_over_.TakeLoad(retry - absl::Nanoseconds(1)), std::nullopt);
    now_ = retry;
    EXPECT_EQ(hand_over_.TakeLoad(now_), first);
    hand_over_.LoadFailed(first, now_);
    delay = std::min(2 * delay, options_.longest_retry_load);
  }
  EXPECT_EQ(delay, options_.longest_retry_load);
  EXPECT_EQ(hand_over_.counts().failed_loads, 13U);
}

TEST_F(HandOverLoadTest, ANewViewDoesNotHurryAFailedLoad) {
  SetView({"a"});
  hand_over_.LoadFailed(*hand_over_.TakeLoad(now_), now_);
  SetView({"a"});
  EXPECT_EQ(LoadAll().size(), kAll - 1);
  EXPECT_EQ(hand_over_.TakeLoad(now_), std::nullopt);
  SetView({"b"});  // forgotten with the partition
  SetView({"a"});
  EXPECT_NE(hand_over_.TakeLoad(now_), std::nullopt);
}

TEST_F(HandOverLoadTest, ASuccessEndsTheWaiting) {
  SetView({"a"});
  const PartitionRef ref = *hand_over_.TakeLoad(now_);
  for (int i = 0; i < 3; ++i) {
    hand_over_.LoadFailed(ref, now_);
    LoadAll();
    now_ += absl::Minutes(2);
    ASSERT_EQ(hand_over_.TakeLoad(now_), ref);
  }
  EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kKeep);
}

TEST_F(HandOverLoadTest, ALoadThatIsNotOwnedAnyMoreIsDiscarded) {
  SetView({"a"});
  const PartitionRef ref = *hand_over_.TakeLoad(now_);
  SetView({"b"});
  EXPECT_EQ(hand_over_.counts().loading, 1U);
  EXPECT_EQ(hand_over_.counts().to_load, 0U);
  EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kDiscard);
  EXPECT_THAT(hand_over_.HeldPartitions(), IsEmpty());
  SetView({"a"});  // its memory is still in use
  const Refs loaded = LoadAll();
  EXPECT_EQ(loaded.size(), kAll - 1);
  EXPECT_EQ(hand_over_.counts().to_load, 1U);
  hand_over_.Dropped(ref);
  EXPECT_THAT(LoadAll(), ElementsAre(ref));
}

TEST_F(HandOverLoadTest, ALoadThatIsOwnedAgainIsKept) {
  SetView({"a"});
  const PartitionRef ref = *hand_over_.TakeLoad(now_);
  SetView({"b"});
  SetView({"a"});
  EXPECT_EQ(LoadAll().size(), kAll - 1);  // it is not loaded twice
  EXPECT_EQ(hand_over_.LoadEnded(ref), HandOver::Loaded::kKeep);
  EXPECT_EQ(hand_over_.counts().held, kAll);
}

TEST_F(HandOverLoadTest, AFailedLoadThatIsNotOwnedAnyMoreIsForgotten) {
  SetView({"a"});
  const PartitionRef ref = *hand_over_.TakeLoad(now_);
  SetView({"b"});
  hand_over_.LoadFailed(ref, now_);
  EXPECT_EQ(hand_over_.TakeLoad(now_ + absl::Hours(1)), std::nullopt);
}

TEST_F(HandOverLoadTest, LayersThatAreNotPlacedAreNotLoaded) {
  hand_over_.SetView(
      ClusterView::Create(
          SmallManifest(),
          {.self = "a", .members = Members({"a"}), .layers = {LayerId{14}}})
          .value());
  const Refs loaded = LoadAll();
  EXPECT_THAT(loaded, SizeIs(8));
  EXPECT_EQ(loaded.front().layer, LayerId{14});
  EXPECT_EQ(hand_over_.counts().owned, 8U);
}

TEST(HandOverThreadsTest, LoadsExchangesAndViewsAtOnce) {
  HandOver hand_over(SmallManifest(), {.announce_linger = absl::ZeroDuration(),
                                       .answer_linger = absl::ZeroDuration()});
  const auto mine = ViewOf("a", {"a"});
  const auto shared = ViewOf("a", {"a", "b"});
  hand_over.SetView(mine);
  const absl::Time now = absl::UnixEpoch();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        const auto ref = hand_over.TakeLoad(now);
        if (!ref.has_value()) continue;
        if (hand_over.LoadEnded(*ref) == HandOver::Loaded::kDiscard) {
          hand_over.Dropped(*ref);
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop.load()) {
      for (const HandOver::Ask& ask : hand_over.Asks()) {
        hand_over.Acknowledged(ask.peer, ask.epoch, ask.partitions, now);
      }
      hand_over.Acknowledge(mine->digest(), hand_over.HeldPartitions());
    }
  });
  for (int i = 0; i < 400; ++i) {
    if (i % 20 == 0) hand_over.SetView(i % 40 == 0 ? shared : mine);
    for (const PartitionRef& ref : hand_over.Advance(now).drop) {
      hand_over.Dropped(ref);
    }
    const HandOver::Counts counts = hand_over.counts();
    EXPECT_LE(counts.held, kAll);
    EXPECT_LE(counts.to_load, counts.owned);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

// The whole table handed over in few and short calls.
TEST(HandOverSizeTest, FullTable) {
  const Manifest& manifest = FullManifest();
  Names names;
  for (int i = 0; i < 32; ++i) names.push_back("s" + std::to_string(i));
  const auto view = [&](const Names& members) {
    return ClusterView::Create(manifest,
                               {.self = "s0", .members = Members(members)})
        .value();
  };
  HandOver hand_over(manifest, {.answer_linger = absl::ZeroDuration()});
  hand_over.SetView(view({"s0"}));
  const absl::Time began = absl::Now();
  const absl::Time now = absl::UnixEpoch();
  while (const auto ref = hand_over.TakeLoad(now)) hand_over.LoadEnded(*ref);
  const auto after = view(names);
  hand_over.SetView(after);
  for (const absl::Time at : {now, now + absl::Seconds(5)}) {
    hand_over.Advance(at);
    for (const HandOver::Ask& ask : hand_over.Asks()) {
      hand_over.Acknowledged(ask.peer, ask.epoch, ask.partitions, at);
    }
  }
  const HandOver::Actions actions = hand_over.Advance(now + absl::Minutes(1));
  EXPECT_EQ(actions.withdraw.size(), 11720 - after->owned().size());
  RecordProperty("milliseconds", static_cast<int>((absl::Now() - began) /
                                                  absl::Milliseconds(1)));
}

}  // namespace
}  // namespace engram::test

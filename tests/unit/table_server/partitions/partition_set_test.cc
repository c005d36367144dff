#include "table_server/partitions/partition_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

class CountingListener final : public PartitionSet::Listener {
 public:
  void OnPartitionsChanged() override { ++calls_; }
  int calls() const { return calls_.load(); }

 private:
  std::atomic<int> calls_{0};
};

class PartitionSetTest : public ::testing::Test {
 protected:
  LayerId layer(size_t index) const {
    return manifest_.layers()[index].layer_id;
  }
  uint32_t AnnouncedIn(size_t index) const {
    uint32_t count = 0;
    const auto snapshot = partitions_.TakeSnapshot();
    for (const char byte : snapshot.layers[index].bitmap) {
      count += static_cast<uint32_t>(std::popcount(static_cast<uint8_t>(byte)));
    }
    return count;
  }

  const Manifest manifest_ = test::TinyManifest();
  PartitionSet partitions_{manifest_};
};

TEST_F(PartitionSetTest, HoldsWhatWasAdded) {
  EXPECT_FALSE(partitions_.Holds(0, 5));
  partitions_.Add(0, PartitionId{5});
  EXPECT_TRUE(partitions_.Holds(0, 5));
  EXPECT_FALSE(partitions_.Holds(0, 4));
  EXPECT_FALSE(partitions_.Holds(1, 5));
  EXPECT_EQ(partitions_.held_count(0), 1U);
  partitions_.Add(0, PartitionId{5});
  EXPECT_EQ(partitions_.held_count(0), 1U);
}

TEST_F(PartitionSetTest, TheLastPartitionFits) {
  const uint32_t last = manifest_.partition_count(1) - 1;
  partitions_.Add(1, PartitionId{last});
  EXPECT_TRUE(partitions_.Holds(1, last));
}

TEST_F(PartitionSetTest, SnapshotIsABitmapALayer) {
  partitions_.Add(0, PartitionId{0});
  partitions_.Add(0, PartitionId{9});
  partitions_.Add(1, PartitionId{64 - 1});
  const PartitionSet::Snapshot snapshot = partitions_.TakeSnapshot();
  ASSERT_EQ(snapshot.layers.size(), manifest_.layers().size());
  EXPECT_EQ(snapshot.layers[0].layer, layer(0));
  EXPECT_EQ(snapshot.layers[0].partition_count, manifest_.partition_count(0));
  EXPECT_EQ(snapshot.layers[0].bitmap.size(),
            (manifest_.partition_count(0) + 7) / 8);
  EXPECT_EQ(snapshot.layers[0].bitmap[0], '\x01');
  EXPECT_EQ(snapshot.layers[0].bitmap[1], '\x02');
  EXPECT_EQ(snapshot.layers[1].bitmap[7], '\x80');
  EXPECT_FALSE(snapshot.draining);
}

TEST_F(PartitionSetTest, ChangesComeInOnePieceFromWhereTheLastEnded) {
  partitions_.Add(0, PartitionId{3});
  const uint64_t position = partitions_.TakeSnapshot().position;
  EXPECT_THAT(partitions_.ChangesSince(position).added, IsEmpty());
  partitions_.Add(1, PartitionId{7});
  partitions_.Add(0, PartitionId{1});
  const PartitionSet::Changes changes = partitions_.ChangesSince(position);
  EXPECT_THAT(changes.added,
              ElementsAre(PartitionRef{layer(1), PartitionId{7}},
                          PartitionRef{layer(0), PartitionId{1}}));
  EXPECT_THAT(partitions_.ChangesSince(changes.position).added, IsEmpty());
  partitions_.AnnounceDraining();
  EXPECT_TRUE(partitions_.ChangesSince(changes.position).draining);
}

TEST_F(PartitionSetTest, WhatIsWithdrawnIsAnsweredAndNotAnnounced) {
  const uint64_t start = partitions_.TakeSnapshot().position;
  partitions_.Add(0, PartitionId{9});
  partitions_.Add(0, PartitionId{10});
  const uint64_t position = partitions_.ChangesSince(start).position;
  partitions_.Withdraw(0, PartitionId{9});
  partitions_.Withdraw(0, PartitionId{9});
  EXPECT_TRUE(partitions_.Holds(0, 9));
  EXPECT_EQ(partitions_.held_count(0), 2U);
  EXPECT_EQ(AnnouncedIn(0), 1U);
  const PartitionSet::Snapshot snapshot = partitions_.TakeSnapshot();
  EXPECT_EQ(snapshot.layers[0].bitmap[1], '\x04');
  const PartitionSet::Changes changes = partitions_.ChangesSince(position);
  EXPECT_THAT(changes.added, IsEmpty());
  EXPECT_THAT(changes.removed,
              ElementsAre(PartitionRef{layer(0), PartitionId{9}}));
  EXPECT_EQ(changes.position, snapshot.position);

  partitions_.Add(0, PartitionId{9});
  EXPECT_EQ(partitions_.held_count(0), 2U);
  EXPECT_EQ(AnnouncedIn(0), 2U);
  EXPECT_THAT(partitions_.ChangesSince(changes.position).added,
              ElementsAre(PartitionRef{layer(0), PartitionId{9}}));
  EXPECT_EQ(partitions_.TakeSnapshot().layers[0].bitmap[1], '\x06');
}

TEST_F(PartitionSetTest, WhatIsDroppedIsAnsweredNoMoreAndMayComeBack) {
  const auto listener = std::make_shared<CountingListener>();
  for (int round = 0; round < 3; ++round) {
    partitions_.Add(1, PartitionId{64});
    partitions_.Add(1, PartitionId{65});
    partitions_.Withdraw(1, PartitionId{64});
    const uint64_t position = partitions_.TakeSnapshot().position;
    partitions_.AddListener(listener);
    const LeaseEpochs::Mark mark = partitions_.Drop(1, PartitionId{64});
    EXPECT_TRUE(partitions_.LeasesEnded(mark));
    partitions_.RemoveListener(listener.get());
    EXPECT_FALSE(partitions_.Holds(1, 64));
    EXPECT_TRUE(partitions_.Holds(1, 65));
    EXPECT_EQ(partitions_.held_count(1), 1U);
    EXPECT_EQ(AnnouncedIn(1), 1U);
    // Watchers were told before.
    EXPECT_TRUE(partitions_.ChangesSince(position).empty());
  }
  EXPECT_EQ(listener->calls(), 0);
}

TEST_F(PartitionSetTest, ALeaseIsWaitedForAfterADrop) {
  partitions_.Add(0, PartitionId{3});
  partitions_.Withdraw(0, PartitionId{3});
  LeaseEpochs::Lease lease = partitions_.TakeLease();
  EXPECT_TRUE(partitions_.Holds(0, 3));
  const LeaseEpochs::Mark mark = partitions_.Drop(0, PartitionId{3});
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
  EXPECT_FALSE(partitions_.WaitUntilLeasesEnded(mark, absl::Now()));
  lease.End();
  EXPECT_TRUE(partitions_.WaitUntilLeasesEnded(mark, absl::Now()));
  EXPECT_TRUE(partitions_.LeasesEnded(mark));
}

TEST(PartitionSetDeathTest, OnlyWhatIsWithdrawnIsDropped) {
  const Manifest manifest = test::TinyManifest();
  PartitionSet partitions(manifest);
  EXPECT_DEATH(partitions.Drop(0, PartitionId{1}), "before");
  partitions.Add(0, PartitionId{1});
  EXPECT_DEATH(partitions.Drop(0, PartitionId{1}), "announced");
  EXPECT_DEATH(partitions.Withdraw(0, PartitionId{manifest.partition_count(0)}),
               "partition_count");
}

// A client: applies what was added, then what was removed.
class Watcher {
 public:
  void Follow(const PartitionSet& partitions) {
    const PartitionSet::Changes changes = partitions.ChangesSince(position_);
    for (const PartitionRef& ref : changes.added) {
      EXPECT_TRUE(told_.insert(ref).second) << "twice in one message";
      announced_.insert(ref);
    }
    for (const PartitionRef& ref : changes.removed) {
      EXPECT_TRUE(told_.insert(ref).second) << "in both lists";
      announced_.erase(ref);
    }
    told_.clear();
    position_ = changes.position;
  }
  const std::set<PartitionRef>& announced() const { return announced_; }

 private:
  std::set<PartitionRef> told_;
  std::set<PartitionRef> announced_;
  uint64_t position_ = 0;
};

TEST_F(PartitionSetTest, WatchersOfAnySpeedEndUpWithTheTruth) {
  std::mt19937 random(5);
  std::vector<Watcher> watchers(4);  // the last one follows only at the end
  std::set<PartitionRef> announced;
  std::set<PartitionRef> withdrawn;
  for (int step = 0; step < 5000; ++step) {
    const size_t index = random() % 2;
    const PartitionId partition{static_cast<uint32_t>(random() % 5)};
    const PartitionRef ref{layer(index), partition};
    if (announced.erase(ref) > 0) {
      partitions_.Withdraw(index, partition);
      withdrawn.insert(ref);
    } else if (withdrawn.erase(ref) > 0 && random() % 2 == 0) {
      partitions_.Drop(index, partition);
    } else {
      partitions_.Add(index, partition);
      announced.insert(ref);
    }
    for (size_t i = 0; i + 1 < watchers.size(); ++i) {
      if (random() % (1 + 20 * i) == 0) watchers[i].Follow(partitions_);
    }
    EXPECT_EQ(watchers[0].announced(), announced);
  }
  for (Watcher& watcher : watchers) {
    watcher.Follow(partitions_);
    EXPECT_THAT(watcher.announced(), ElementsAreArray(announced));
  }
  // However much happened: of a partition there is one change, the last.
  const PartitionSet::Changes all = partitions_.ChangesSince(0);
  EXPECT_EQ(all.added.size() + all.removed.size(), 10U);
  EXPECT_GT(all.position, 1000U);
}

TEST_F(PartitionSetTest, ListenersHearOfEachChangeUntilRemoved) {
  const auto listener = std::make_shared<CountingListener>();
  partitions_.AddListener(listener);
  partitions_.Add(0, PartitionId{0});
  partitions_.Add(0, PartitionId{0});  // no change
  partitions_.AnnounceDraining();
  partitions_.AnnounceDraining();
  EXPECT_EQ(listener->calls(), 2);
  partitions_.Withdraw(0, PartitionId{0});
  partitions_.Withdraw(0, PartitionId{0});  // no change
  EXPECT_EQ(listener->calls(), 3);
  partitions_.RemoveListener(listener.get());
  partitions_.Add(0, PartitionId{1});
  EXPECT_EQ(listener->calls(), 3);
  EXPECT_EQ(listener.use_count(), 1);
}

TEST_F(PartitionSetTest, AddsFromManyThreads) {
  constexpr uint32_t kThreads = 4;
  const uint32_t count = manifest_.partition_count(0);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t p = t; p < count; p += kThreads) {
        partitions_.Add(0, PartitionId{p});
        EXPECT_TRUE(partitions_.Holds(0, p));
        partitions_.TakeSnapshot();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(partitions_.held_count(0), count);
  EXPECT_EQ(partitions_.ChangesSince(0).added.size(), count);
}

}  // namespace
}  // namespace engram

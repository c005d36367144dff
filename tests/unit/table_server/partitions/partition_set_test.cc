#include "table_server/partitions/partition_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
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

TEST_F(PartitionSetTest, ListenersHearOfEachChangeUntilRemoved) {
  const auto listener = std::make_shared<CountingListener>();
  partitions_.AddListener(listener);
  partitions_.Add(0, PartitionId{0});
  partitions_.Add(0, PartitionId{0});  // no change
  partitions_.AnnounceDraining();
  partitions_.AnnounceDraining();
  EXPECT_EQ(listener->calls(), 2);
  partitions_.RemoveListener(listener.get());
  partitions_.Add(0, PartitionId{1});
  EXPECT_EQ(listener->calls(), 2);
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

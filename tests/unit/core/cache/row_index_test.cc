#include "core/cache/row_index.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace engram {
namespace {

constexpr uint64_t kHash = uint64_t{7} << 32 | 1234;

struct alignas(64) Bucket {
  std::array<uint64_t, RowIndex::kEntries> words{};
};

TEST(RowIndexTest, FindsWhatIsSet) {
  Bucket bucket;
  const RowIndex index(bucket.words.data(), 1);
  EXPECT_EQ(index.Find(0, kHash), RowIndex::kNoSlot);
  index.Set(0, 3, kHash, 0);
  EXPECT_EQ(index.Find(0, kHash), 0U);
  EXPECT_EQ(index.Find(0, kHash + 1), RowIndex::kNoSlot);
  index.Clear(0, 3);
  EXPECT_EQ(index.Find(0, kHash), RowIndex::kNoSlot);
}

// A reader that is held up between two entries sees the row in both.
TEST(RowIndexTest, ARowInTwoEntriesIsFoundInOneOfThem) {
  Bucket bucket;
  const RowIndex index(bucket.words.data(), 1);
  index.Set(0, 0, kHash, 5);
  index.Set(0, 7, kHash, 8);
  const uint32_t slot = index.Find(0, kHash);
  EXPECT_TRUE(slot == 5 || slot == 8) << slot;
}

TEST(RowIndexTest, WhatIsFoundIsASlotThatTheRowHad) {
  Bucket bucket;
  const RowIndex index(bucket.words.data(), 1);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 200'000; ++i) {
      index.Set(0, 0, kHash, 5);
      index.Clear(0, 0);
      index.Set(0, 7, kHash, 8);
      index.Clear(0, 7);
    }
    done = true;
  });
  uint32_t slot = RowIndex::kNoSlot;
  while (!done && (slot == 5 || slot == 8 || slot == RowIndex::kNoSlot)) {
    slot = index.Find(0, kHash);
  }
  writer.join();
  EXPECT_TRUE(slot == 5 || slot == 8 || slot == RowIndex::kNoSlot) << slot;
}

}  // namespace
}  // namespace engram

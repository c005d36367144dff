#include "core/cache/cache_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace engram {
namespace {

using ::testing::HasSubstr;

constexpr size_t kShardBytes = 200;

TEST(CacheLayoutTest, UsesWhatItMayAndNoMore) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const size_t row_bytes = random() % 2 == 0 ? 264 : 1 + random() % 600;
    const uint64_t max_bytes = 2000 + (random() >> (30 + random() % 24));
    const auto layout = CacheLayout::Within(max_bytes, row_bytes, kShardBytes);
    ASSERT_TRUE(layout.ok()) << layout.status();
    const uint64_t bytes =
        layout->slab_bytes + layout->shard_count * kShardBytes;
    ASSERT_LE(bytes, max_bytes);
    // One more slot a shard, and lines and pages that are not full.
    const uint64_t slack = layout->shard_count * (row_bytes + 400) +
                           (layout->in_pages ? 2 << 20 : 0);
    ASSERT_GE(bytes + slack, max_bytes) << max_bytes << " of " << row_bytes;
    ASSERT_GE(layout->slab_bytes, layout->index_bytes + layout->ghost_bytes +
                                      layout->next_bytes +
                                      layout->slots() * layout->slot_bytes);
  }
}

TEST(CacheLayoutTest, MostOfItIsRows) {
  const auto layout = CacheLayout::Within(1 << 30, 264, kShardBytes);
  ASSERT_TRUE(layout.ok());
  EXPECT_GE(layout->slots() * 264, (uint64_t{1} << 30) * 86 / 100);
}

TEST(CacheLayoutTest, SaysWhatOneRowNeeds) {
  const auto layout = CacheLayout::Within(300, 264, kShardBytes);
  EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(layout.status().message()), HasSubstr("300 bytes"));
  EXPECT_THAT(std::string(layout.status().message()), HasSubstr("200"));
  EXPECT_FALSE(CacheLayout::Within(1 << 20, 0, kShardBytes).ok());
  EXPECT_FALSE(CacheLayout::Within(~uint64_t{0} >> 8, 264, kShardBytes).ok());
}

}  // namespace
}  // namespace engram

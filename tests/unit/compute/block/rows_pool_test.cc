#include "compute/block/rows_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

constexpr size_t kUnit = RowsPool::kAlignment;

class RowsPoolTest : public testing::Test {
 protected:
  RowsBuffer Take(size_t bytes) {
    auto buffer = pool_.Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(buffer->bytes().size(), bytes);
    return *std::move(buffer);
  }
  bool InArena(const RowsBuffer& buffer) const {
    return pool_.Contains(buffer.bytes());
  }
  // Where a buffer of the arena starts, in units.
  size_t At(const RowsBuffer& buffer) const {
    EXPECT_TRUE(InArena(buffer));
    return static_cast<size_t>(buffer.bytes().data() - arena_.data()) / kUnit;
  }

  std::vector<std::byte> arena_ = std::vector<std::byte>(8 * kUnit);
  RowsPool pool_{absl::MakeSpan(arena_)};
};

TEST_F(RowsPoolTest, PiecesAreAlignedAndSideBySide) {
  const RowsBuffer a = Take(1);
  const RowsBuffer b = Take(kUnit + 1);
  const RowsBuffer c = Take(kUnit);
  EXPECT_EQ(At(a), 0);
  EXPECT_EQ(At(b), 1);
  EXPECT_EQ(At(c), 3);
  EXPECT_EQ(pool_.use().used_bytes, 4 * kUnit);
  EXPECT_EQ(pool_.use().limit_bytes, 8 * kUnit);
  EXPECT_EQ(pool_.use().fallbacks, 0);
}

TEST_F(RowsPoolTest, WhatDoesNotFitIsPlainMemory) {
  const RowsBuffer all = Take(8 * kUnit);
  EXPECT_TRUE(InArena(all));
  const RowsBuffer more = Take(1000);
  EXPECT_FALSE(InArena(more));
  std::memset(more.bytes().data(), 1, more.bytes().size());
  EXPECT_EQ(pool_.use().used_bytes, 8 * kUnit);
  EXPECT_EQ(pool_.use().fallbacks, 1);
}

TEST_F(RowsPoolTest, GapsAreJoinedAgain) {
  RowsBuffer a = Take(2 * kUnit);
  RowsBuffer b = Take(2 * kUnit);
  RowsBuffer c = Take(2 * kUnit);
  RowsBuffer d = Take(2 * kUnit);
  a = {};
  c = {};
  EXPECT_FALSE(InArena(Take(4 * kUnit)));  // two gaps of 2
  b = {};
  EXPECT_EQ(At(Take(6 * kUnit)), 0);
  d = {};
  EXPECT_EQ(At(Take(8 * kUnit)), 0);
  EXPECT_EQ(pool_.use().used_bytes, 0);
}

TEST_F(RowsPoolTest, TheFirstLongEnoughGapIsTaken) {
  RowsBuffer a = Take(kUnit);
  const RowsBuffer b = Take(kUnit);
  RowsBuffer c = Take(3 * kUnit);
  const RowsBuffer d = Take(kUnit);
  a = {};
  c = {};
  const RowsBuffer two = Take(2 * kUnit);
  const RowsBuffer one = Take(kUnit);
  EXPECT_EQ(At(two), 2);
  EXPECT_EQ(At(one), 0);
}

TEST_F(RowsPoolTest, MovedBuffersAreFreedOnce) {
  RowsBuffer a = Take(kUnit);
  RowsBuffer b = std::move(a);
  a = Take(kUnit);
  std::swap(a, b);
  EXPECT_EQ(pool_.use().used_bytes, 2 * kUnit);
  a = std::move(b);
  EXPECT_EQ(pool_.use().used_bytes, kUnit);
  a = {};
  EXPECT_EQ(pool_.use().used_bytes, 0);
}

TEST_F(RowsPoolTest, NoBytesAreABufferToo) {
  RowsBuffer none = Take(0);
  EXPECT_TRUE(none.bytes().empty());
  EXPECT_EQ(pool_.use().used_bytes, kUnit);
}

TEST_F(RowsPoolTest, ContainsOnlyWhatIsWhollyInside) {
  const absl::Span<const std::byte> arena = arena_;
  EXPECT_TRUE(pool_.Contains(arena));
  const std::vector<std::byte> other(10);
  EXPECT_FALSE(pool_.Contains(other));
  // The arena of a pool ends where its last whole piece does.
  const RowsPool shorter(absl::MakeSpan(arena_).first(kUnit + 7));
  EXPECT_TRUE(shorter.Contains(arena.first(kUnit)));
  EXPECT_FALSE(shorter.Contains(arena.first(kUnit + 1)));
  EXPECT_FALSE(shorter.Contains(arena.subspan(kUnit, 1)));
}

TEST(RowsPool, AnEmptyArena) {
  RowsPool pool({});
  const auto buffer = pool.Allocate(5);
  ASSERT_TRUE(buffer.ok());
  EXPECT_FALSE(pool.Contains(buffer->bytes()));
  EXPECT_EQ(pool.use().limit_bytes, 0);
  EXPECT_EQ(pool.use().fallbacks, 1);
}

TEST(RowsPool, MoreThanThereIs) {
  EXPECT_TRUE(
      absl::IsResourceExhausted(RowsBuffer::Plain(size_t{1} << 62).status()));
}

// Every buffer keeps what its holder wrote, whoever else allocates.
TEST_F(RowsPoolTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      std::vector<RowsBuffer> held(3);
      for (int i = 0; i < 500; ++i) {
        RowsBuffer& buffer = held[random() % held.size()];
        buffer = Take(random() % (3 * kUnit));
        std::memset(buffer.bytes().data(), t + 1, buffer.bytes().size());
        for (const RowsBuffer& each : held) {
          for (const std::byte b : each.bytes()) {
            ASSERT_EQ(static_cast<int>(b), t + 1);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_.use().used_bytes, 0);
  EXPECT_EQ(At(Take(8 * kUnit)), 0);
}

}  // namespace
}  // namespace engram

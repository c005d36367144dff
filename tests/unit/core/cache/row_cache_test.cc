#include "core/cache/row_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/core/cache/made_up_rows.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kRowBytes = 264;
constexpr std::byte kPoison{0xEE};

class RowCacheTest : public ::testing::TestWithParam<size_t> {
 protected:
  void Create(uint64_t max_bytes, size_t row_bytes = kRowBytes) {
    row_bytes_ = row_bytes;
    auto cache = RowCache::Create({max_bytes, row_bytes});
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    first_ = *cache_->KeyOf("v1", LayerId{1});
  }
  RowCache::Inserted Insert(TableKey table, const std::vector<RowId>& rows) {
    return cache_->Insert(table, rows, {}, MadeUpRows(table, rows, row_bytes_));
  }
  // Those that miss; the others have been found to be right.
  std::vector<uint32_t> Missing(TableKey table,
                                const std::vector<RowId>& rows) {
    std::vector<std::byte> out(rows.size() * row_bytes_, kPoison);
    std::vector<uint32_t> misses;
    cache_->Lookup(table, rows, {}, absl::MakeSpan(out), misses);
    const auto wanted = MadeUpRows(table, rows, row_bytes_);
    size_t miss = 0;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (miss < misses.size() && misses[miss] == i) {
        ++miss;
        continue;
      }
      EXPECT_EQ(std::memcmp(&out[i * row_bytes_], &wanted[i * row_bytes_],
                            row_bytes_),
                0)
          << "row " << rows[i];
    }
    EXPECT_EQ(miss, misses.size());
    return misses;
  }

  size_t row_bytes_ = 0;
  std::unique_ptr<RowCache> cache_;
  TableKey first_{};
};

TEST_P(RowCacheTest, HasWhatWasInserted) {
  Create(1 << 20, GetParam());
  EXPECT_THAT(Missing(first_, {7, 8}), ElementsAre(0, 1));
  EXPECT_EQ(Insert(first_, {7, 9, 0xffffffff}).inserts, 3u);
  EXPECT_EQ(Insert(first_, {7}).inserts, 0u);
  EXPECT_THAT(Missing(first_, {6, 7, 8, 9, 0xffffffff, 7}), ElementsAre(0, 2));
  const RowCache::Stats stats = cache_->stats();
  EXPECT_EQ(stats.hits, 4u);
  EXPECT_EQ(stats.misses, 4u);
  EXPECT_EQ(stats.inserts, 3u);
  EXPECT_EQ(stats.rows, 3u);
  EXPECT_EQ(stats.evictions, 0u);
}
INSTANTIATE_TEST_SUITE_P(RowBytes, RowCacheTest,
                         ::testing::Values(1, 8, 33, 264, 1000));

TEST_F(RowCacheTest, RowsOfOtherVersionsAndLayersAreOthers) {
  Create(1 << 20);
  const TableKey layer = *cache_->KeyOf("v1", LayerId{14});
  const TableKey version = *cache_->KeyOf("v2", LayerId{1});
  EXPECT_EQ(*cache_->KeyOf("v1", LayerId{1}), first_);
  Insert(first_, {5});
  EXPECT_THAT(Missing(layer, {5}), ElementsAre(0));
  EXPECT_THAT(Missing(version, {5}), ElementsAre(0));
  Insert(version, {5});
  EXPECT_THAT(Missing(version, {5}), IsEmpty());
  EXPECT_THAT(Missing(first_, {5}), IsEmpty());
}

TEST_F(RowCacheTest, RowsLieInTheirSlots) {
  Create(1 << 20);
  const std::vector<RowId> rows = {3, 4};
  std::vector<std::byte> buffer(6 * kRowBytes, kPoison);
  MakeUpRow(first_, 3,
            absl::MakeSpan(buffer).subspan(1 * kRowBytes, kRowBytes));
  MakeUpRow(first_, 4,
            absl::MakeSpan(buffer).subspan(5 * kRowBytes, kRowBytes));
  cache_->Insert(first_, rows, {1, 5}, buffer);
  EXPECT_THAT(Missing(first_, rows), IsEmpty());

  std::vector<std::byte> out(6 * kRowBytes, kPoison);
  std::vector<uint32_t> misses = {77};
  cache_->Lookup(first_, {3, 9, 4}, {1, 3, 5}, absl::MakeSpan(out), misses);
  EXPECT_THAT(misses, ElementsAre(77, 1));
  EXPECT_EQ(out, buffer);
}

TEST_F(RowCacheTest, StaysWithinItsBytes) {
  for (const uint64_t max_bytes :
       {uint64_t{12'000}, uint64_t{300'000}, uint64_t{40} << 20}) {
    Create(max_bytes);
    const uint64_t slots = cache_->stats().slots;
    for (int pass = 0; pass < 2; ++pass) {
      for (RowId row = 0; row < 2 * slots; ++row) Insert(first_, {row});
    }
    const RowCache::Stats stats = cache_->stats();
    EXPECT_LE(stats.bytes, max_bytes);
    EXPECT_GE(stats.bytes, max_bytes / 2);
    EXPECT_EQ(stats.rows, slots);
    EXPECT_EQ(stats.inserts - stats.evictions, stats.rows);
    EXPECT_GE(slots * kRowBytes, stats.bytes / 2);
  }
}

TEST_F(RowCacheTest, NamesOfTablesAreBounded) {
  Create(64 << 10);
  absl::StatusOr<TableKey> key = first_;
  uint32_t count = 1;
  for (; key.ok() && count < 1000; ++count) {
    key = cache_->KeyOf("version " + std::to_string(count), LayerId{1});
  }
  EXPECT_EQ(key.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(cache_->stats().bytes, 64u << 10);
  EXPECT_EQ(*cache_->KeyOf("v1", LayerId{1}), first_);
}

TEST_F(RowCacheTest, ABudgetWithoutARowIsRefused) {
  const auto cache = RowCache::Create({1000, kRowBytes});
  EXPECT_EQ(cache.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cache.status().message()), HasSubstr("1000 bytes"));
}

}  // namespace
}  // namespace engram

// Which rows stay: against LRU of as many rows, and with scans in between.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "core/cache/row_cache.h"
#include "tests/testing/lru_rows.h"
#include "tests/testing/zipf_rows.h"

namespace engram {
namespace {

constexpr size_t kRowBytes = 264;
constexpr uint32_t kTableRows = 50'000;
constexpr size_t kAsked = 400'000;

class RowCachePolicyTest : public ::testing::Test {
 protected:
  RowCachePolicyTest()
      : cache_(*RowCache::Create({1'500'000, kRowBytes})),
        table_(*cache_->KeyOf("v", LayerId{1})),
        row_(kRowBytes) {}

  bool Ask(RowId row) {
    misses_.clear();
    cache_->Lookup(table_, {row}, {}, absl::MakeSpan(row_), misses_);
    if (misses_.empty()) return true;
    cache_->Insert(table_, {row}, {}, row_);
    return false;
  }

  // Of the Zipf-distributed rows, in the second half, when before each
  // `scanned` rows are asked for that never come again.
  double HitRatio(double exponent, size_t scanned) {
    const ZipfRows zipf(exponent, kTableRows);
    std::mt19937_64 random(3);
    size_t hits = 0;
    RowId next = kTableRows;
    for (size_t i = 0; i < kAsked; ++i) {
      for (size_t j = 0; j < scanned; ++j) Ask(next++);
      const bool hit = Ask(zipf.Draw(random));
      hits += hit && i >= kAsked / 2 ? 1 : 0;
    }
    return static_cast<double>(hits) / (kAsked / 2);
  }

  double LruHitRatio(double exponent) {
    LruRows lru(cache_->stats().slots);
    const ZipfRows zipf(exponent, kTableRows);
    std::mt19937_64 random(3);
    size_t hits = 0;
    for (size_t i = 0; i < kAsked; ++i) {
      const bool hit = lru.Ask(zipf.Draw(random));
      hits += hit && i >= kAsked / 2 ? 1 : 0;
    }
    return static_cast<double>(hits) / (kAsked / 2);
  }

  std::unique_ptr<RowCache> cache_;
  const TableKey table_;
  std::vector<std::byte> row_;
  std::vector<uint32_t> misses_;
};

TEST_F(RowCachePolicyTest, IsAheadOfLru) {
  EXPECT_GT(HitRatio(0.8, 0), LruHitRatio(0.8) + 0.05);
}

TEST_F(RowCachePolicyTest, IsAheadOfLruOfSteeperOnes) {
  EXPECT_GT(HitRatio(1.2, 0), LruHitRatio(1.2));
}

// For each row two of a scan: LRU would have a third of its rows left.
TEST_F(RowCachePolicyTest, AScanTakesLittle) {
  const double with_scan = HitRatio(1.0, 2);
  cache_ = *RowCache::Create({1'500'000, kRowBytes});
  ASSERT_EQ(*cache_->KeyOf("v", LayerId{1}), table_);
  EXPECT_GT(with_scan, HitRatio(1.0, 0) * 0.95);
}

// The hot rows of yesterday go when others are asked for.
TEST_F(RowCachePolicyTest, OldRowsAgeOut) {
  const auto slots = static_cast<RowId>(cache_->stats().slots);
  const RowId half = slots / 2;
  const auto ask = [&](RowId begin, int passes) {
    size_t hits = 0;
    for (int pass = 0; pass < passes; ++pass) {
      hits = 0;
      for (RowId row = begin; row < begin + half; ++row) hits += Ask(row);
    }
    return static_cast<double>(hits) / half;
  };
  EXPECT_GT(ask(0, 6), 0.95);
  EXPECT_GT(ask(slots, 20), 0.95);
  EXPECT_GT(ask(2 * slots, 20), 0.95);
}

}  // namespace
}  // namespace engram

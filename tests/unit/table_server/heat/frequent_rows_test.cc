#include "table_server/heat/frequent_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/testing/zipf_rows.h"

namespace engram {
namespace {

TEST(FrequentRowsTest, CountsExactlyWhileRowsFit) {
  FrequentRows frequent(3);
  for (const uint64_t key : {5, 6, 5, 7, 5, 6}) frequent.Add(key);
  EXPECT_EQ(frequent.missed(), 0U);
  std::map<uint64_t, uint64_t> got;
  for (const RowLookups& row : frequent.Rows()) got[row.key] = row.lookups;
  EXPECT_EQ(got, (std::map<uint64_t, uint64_t>{{5, 3}, {6, 2}, {7, 1}}));
}

TEST(FrequentRowsTest, NothingIsFrequent) {
  FrequentRows frequent(10);
  for (uint64_t key = 0; key < 1000; ++key) {
    frequent.Add(key);
    ASSERT_LE(frequent.size(), 10U);
  }
  EXPECT_GE(frequent.missed(), 1U);
}

TEST(FrequentRowsTest, CountsAreWithinTheirBound) {
  const ZipfRows zipf(1.0, 100'000);
  std::mt19937_64 random(2);
  FrequentRows frequent(500);
  std::map<uint64_t, uint64_t> truth;
  for (int i = 0; i < 400'000; ++i) {
    const uint64_t row = zipf.Draw(random);
    ++truth[row];
    frequent.Add(row);
    ASSERT_LE(frequent.size(), 500U);
  }
  const uint64_t missed = frequent.missed();
  // A useful one: what all rows of the table would get on average is 800.
  EXPECT_GT(missed, 0U);
  EXPECT_LT(missed, 800U);
  std::map<uint64_t, uint64_t> got;
  for (const RowLookups& row : frequent.Rows()) {
    got[row.key] = row.lookups;
    ASSERT_LE(row.lookups, truth[row.key]);
    ASSERT_GE(row.lookups + missed, truth[row.key]);
  }
  for (const auto& [row, lookups] : truth) {
    if (lookups > missed) {
      ASSERT_TRUE(got.contains(row)) << row << ": " << lookups;
    }
  }
  // Those that never left are counted in full.
  EXPECT_EQ(got[0], truth[0]);
}

}  // namespace
}  // namespace engram

#include "engram_client/ctl/load_ids.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

std::vector<RowId> Draw(uint64_t row_count, double exponent, uint64_t seed,
                        size_t count) {
  LoadRandom random(seed);
  std::vector<RowId> ids(count);
  RowIdDraw(row_count, exponent).Fill(random, absl::MakeSpan(ids));
  return ids;
}

TEST(RowIdDrawTest, EveryRankHasARowOfItsOwn) {
  for (const uint64_t row_count : {1, 2, 3, 10, 97, 1000, 1024, 65536}) {
    const RowIdDraw draw(row_count, 1);
    std::vector<RowId> rows;
    for (uint64_t rank = 1; rank <= row_count; ++rank) {
      rows.push_back(draw.RowOfRank(rank));
    }
    std::sort(rows.begin(), rows.end());
    for (uint64_t i = 0; i < row_count; ++i) ASSERT_EQ(rows[i], i);
  }
}

TEST(RowIdDrawTest, HotRowsLieFarApart) {
  const RowIdDraw draw(1'000'000, 1);
  for (uint64_t rank = 1; rank < 100; ++rank) {
    const int64_t gap =
        int64_t{draw.RowOfRank(rank + 1)} - int64_t{draw.RowOfRank(rank)};
    EXPECT_GT(std::abs(gap), 100'000);
  }
}

TEST(RowIdDrawTest, UniformIsFlat) {
  std::vector<double> counts(10);
  for (const RowId id : Draw(1000, 0, 1, 100'000)) ++counts[id / 100];
  for (const double count : counts) EXPECT_NEAR(count, 10'000, 500);
}

// Each rank's share against the definition, for exponents on both sides of 1
// and at it, where the integrals change their form.
TEST(RowIdDrawTest, ZipfGivesEachRankItsShare) {
  constexpr uint64_t kRows = 50;
  constexpr size_t kDraws = 200'000;
  for (const double exponent : {0.3, 0.99, 1.0, 1.0000001, 1.5, 4.0}) {
    const RowIdDraw draw(kRows, exponent);
    std::vector<double> counts(kRows);
    for (const RowId id : Draw(kRows, exponent, 3, kDraws)) ++counts[id];
    double sum = 0;
    for (uint64_t r = 1; r <= kRows; ++r) sum += std::pow(r, -exponent);
    for (uint64_t r = 1; r <= kRows; ++r) {
      const double want = kDraws * std::pow(r, -exponent) / sum;
      EXPECT_NEAR(counts[draw.RowOfRank(r)], want, 5 * std::sqrt(want) + 5)
          << "exponent " << exponent << ", rank " << r;
    }
  }
}

TEST(RowIdDrawTest, TheLargestTableAndTheSmallest) {
  for (const double exponent : {0.0, 0.5, 1.0, 10.0}) {
    for (const RowId id : Draw(1, exponent, 1, 100)) EXPECT_EQ(id, 0);
    const std::vector<RowId> ids = Draw(uint64_t{1} << 32, exponent, 1, 10'000);
    if (exponent < 1) {
      EXPECT_GT(*std::max_element(ids.begin(), ids.end()), RowId{1} << 31);
    }
  }
  for (const RowId id : Draw(384'006'166, 1.1, 1, 10'000)) {
    EXPECT_LT(id, 384'006'166);
  }
}

TEST(RowIdDrawTest, TheSeedDecidesTheIds) {
  EXPECT_EQ(Draw(1000, 1, 5, 100), Draw(1000, 1, 5, 100));
  EXPECT_NE(Draw(1000, 1, 5, 100), Draw(1000, 1, 6, 100));
  // What a seed stands for does not change between releases.
  EXPECT_THAT(Draw(1'000'000, 0, 1, 3),
              testing::ElementsAre(566561, 745781, 971002));
}

}  // namespace
}  // namespace engram::ctl

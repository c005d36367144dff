#include "table_server/heat/sampled_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "core/wire/heat_hash.h"
#include "tests/testing/zipf_rows.h"

namespace engram {
namespace {

constexpr LayerId kLayer{14};

void AddRow(SampledRows& sample, RowId row) {
  const uint64_t key = HeatKey(kLayer, row);
  sample.Add(key, HeatHash(key));
}

double ShareOf(uint64_t last_hash) { return std::ldexp(last_hash, -64); }

TEST(HeatHashTest, IsSplitMix64) {
  // The first outputs of SplitMix64 for the seeds 0 and 1234567, as published.
  EXPECT_EQ(HeatHash(0), 0xE220A8397B1DCDAF);
  EXPECT_EQ(HeatHash(1234567), 6457827717110365317U);
  EXPECT_EQ(HeatKey(LayerId{14}, 5), (uint64_t{14} << 32) + 5);
  EXPECT_EQ(LayerOfHeatKey(HeatKey(LayerId{14}, 5)), LayerId{14});
  EXPECT_EQ(RowOfHeatKey(HeatKey(LayerId{14}, ~0U)), ~0U);
}

TEST(SampledRowsTest, HasEveryRowWhileTheyFit) {
  SampledRows sample(100);
  for (RowId row = 0; row < 100; ++row) {
    for (RowId i = 0; i <= row; ++i) AddRow(sample, row);
  }
  EXPECT_EQ(sample.last_hash(), SampledRows::kAll);
  const std::vector<RowLookups> rows = sample.Rows(SampledRows::kAll);
  EXPECT_EQ(rows.size(), 100U);
  for (const RowLookups& row : rows) {
    EXPECT_EQ(row.lookups, RowOfHeatKey(row.key) + 1);
  }
}

TEST(SampledRowsTest, OfOneRow) {
  SampledRows sample(1);
  for (RowId row = 0; row < 1000; ++row) AddRow(sample, row);
  EXPECT_EQ(sample.size(), 1U);
}

// Which rows are sampled depends on hashes alone, and their counts are whole
// although the sample was made smaller many times.
TEST(SampledRowsTest, CountsAreExactWhateverIsDropped) {
  constexpr uint32_t kRows = 100'000;
  const ZipfRows zipf(0.8, kRows);
  std::mt19937_64 random(1);
  SampledRows sample(1000);
  std::map<RowId, uint64_t> truth;
  for (int i = 0; i < 500'000; ++i) {
    const RowId row = zipf.Draw(random);
    ++truth[row];
    AddRow(sample, row);
    ASSERT_LE(sample.size(), 1000U);
  }
  EXPECT_GT(sample.size(), 800U);
  const uint64_t last_hash = sample.last_hash();
  std::map<RowId, uint64_t> wanted;
  for (const auto& [row, lookups] : truth) {
    if (HeatHash(HeatKey(kLayer, row)) <= last_hash) wanted[row] = lookups;
  }
  std::map<RowId, uint64_t> got;
  for (const RowLookups& row : sample.Rows(last_hash)) {
    got[RowOfHeatKey(row.key)] = row.lookups;
  }
  EXPECT_EQ(got, wanted);
  // Fewer are asked for fewer.
  EXPECT_LT(sample.Rows(last_hash / 2).size(), wanted.size() * 0.6);
}

// Over many samples, each of other rows, the mean of the estimates is the
// truth: of all rows, and of those that are asked for once and often.
TEST(SampledRowsTest, EstimatesAreUnbiased) {
  constexpr uint32_t kRows = 5000;
  constexpr int kTrials = 400;
  constexpr size_t kSample = 100;
  double rows = 0;
  double often = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    SampledRows sample(kSample);
    for (int round = 0; round < 3; ++round) {
      // Every tenth row three times.
      for (RowId row = 0; row < kRows; row += round == 0 ? 1 : 10) {
        AddRow(sample, row + trial * kRows);
      }
    }
    const double share = ShareOf(sample.last_hash());
    for (const RowLookups& row : sample.Rows(sample.last_hash())) {
      rows += 1 / share / kTrials;
      often += (row.lookups == 3) / share / kTrials;
    }
  }
  // The standard errors are 0.5 % and 1.7 %.
  EXPECT_NEAR(rows, kRows, 0.02 * kRows);
  EXPECT_NEAR(often, kRows / 10.0, 0.06 * kRows / 10);
}

}  // namespace
}  // namespace engram

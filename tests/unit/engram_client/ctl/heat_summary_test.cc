#include "engram_client/ctl/heat_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/cache/row_cache.h"
#include "engram_client/ctl/heat_curve.h"
#include "engram_client/ctl/heat_report.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/made_up_heat.h"

namespace engram::ctl {
namespace {

using ::engram::test::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

// Row r of 200,000 was asked for 10^6 / (r + 1) times.
constexpr uint32_t kRows = 200'000;
std::map<uint32_t, uint64_t> Zipf() {
  std::map<uint32_t, uint64_t> lookups;
  for (uint32_t row = 0; row < kRows; ++row) {
    lookups[row] = 1'000'000 / (row + 1);
  }
  return lookups;
}

ClusterHeat Merged(const std::vector<ServerHeat>& servers) {
  auto heat = MergeHeat(servers);
  EXPECT_THAT(heat, IsOk());
  return *std::move(heat);
}

// The share that the hottest `rows` of Zipf() get.
double TrueShare(uint32_t rows) {
  double all = 0;
  double hot = 0;
  for (const auto& [row, lookups] : Zipf()) {
    all += static_cast<double>(lookups);
    if (row < rows) hot += static_cast<double>(lookups);
  }
  return hot / all;
}

TEST(HeatSummaryTest, IsExactWhereEveryRowWasCounted) {
  const ClusterHeat heat = Merged({MadeUpHeat("t0", Zipf())});
  const HeatSummary summary = Summarize(heat, 2);
  EXPECT_EQ(summary.sample_share, 1);
  EXPECT_EQ(summary.rows, kRows);
  EXPECT_EQ(summary.rows_error, 0);
  EXPECT_FALSE(summary.hot_from.has_value());
  ASSERT_EQ(summary.top.size(), 2U);
  EXPECT_EQ(summary.top[0].row, 0U);
  EXPECT_EQ(summary.top[0].layer_id, 14U);
  EXPECT_EQ(summary.top[1].lookups, 500'000U);
  EXPECT_TRUE(summary.top[1].exact);
  for (const HeatSummary::Point& point : summary.curve) {
    EXPECT_NEAR(point.share, TrueShare(static_cast<uint32_t>(point.rows)),
                1e-9);
    EXPECT_EQ(point.share_error, 0);
    EXPECT_EQ(point.bytes, point.rows * 264);
  }
  EXPECT_EQ(summary.curve.front().rows, 1);
  EXPECT_EQ(summary.curve.back().rows, 100'000);
  double rows = 0;
  double lookups = 0;
  for (const HeatSummary::Bucket& bucket : summary.histogram) {
    EXPECT_EQ(bucket.most, 2 * bucket.least - 1);
    rows += bucket.rows;
    lookups += bucket.lookups;
  }
  EXPECT_EQ(rows, kRows);
  EXPECT_EQ(lookups, static_cast<double>(heat.lookups));
  // 10^6 / 7 .. 10^6 / 4: 131,072 <= lookups < 262,144 for rows 3 .. 6.
  const auto bucket =
      std::find_if(summary.histogram.begin(), summary.histogram.end(),
                   [](const auto& b) { return b.least == 131'072; });
  ASSERT_NE(bucket, summary.histogram.end());
  EXPECT_EQ(bucket->rows, 4);
}

// Rows 1 and 2 are known by name, 100 sampled ones stand for 1,000 and 2,000
// lookups, too few by 500.
TEST(HeatCurveTest, SampledRowsGetWhatIsUnaccountedFor) {
  const HeatCurve curve({300, 200}, std::vector<uint64_t>(100, 2), 0.1, 3000,
                        16);
  EXPECT_DOUBLE_EQ(curve.rows(), 1002);
  EXPECT_DOUBLE_EQ(curve.ShareOf(1), 0.1);
  EXPECT_DOUBLE_EQ(curve.ShareOf(1.5), 0.1 + 100 / 3000.0);
  EXPECT_DOUBLE_EQ(curve.ShareOf(2), 500 / 3000.0);
  EXPECT_DOUBLE_EQ(curve.ShareOf(502), 0.5 + 250 / 3000.0);
  EXPECT_DOUBLE_EQ(curve.ShareOf(1002), 1);
  EXPECT_DOUBLE_EQ(curve.ShareOf(1e9), 1);
  EXPECT_EQ(curve.RowsFor(0.1), 1);
  EXPECT_EQ(curve.RowsFor(1), 1002);
  EXPECT_DOUBLE_EQ(curve.ErrorOf(1), std::sqrt(16 * 300.0) / 3000);
  EXPECT_NEAR(curve.ErrorOf(502),
              std::sqrt(0.9 * (100 + 4 * 50) / 0.01 + 16 * 500 / 4.0) / 3000,
              1e-9);
  EXPECT_NEAR(curve.ErrorOf(1002), std::sqrt(0.9 * 400 / 0.01) / 3000, 1e-9);
}

// Far too many lookups: the curve still rises, to the whole.
TEST(HeatCurveTest, ASampleOfTooHotRowsDoesNotTurnItRound) {
  const HeatCurve curve({}, {1000, 10, 10, 1, 1, 1}, 0.1, 500, 0);
  double before = 0;
  for (int rows = 0; rows <= 60; ++rows) {
    EXPECT_GE(curve.ShareOf(rows), before) << rows;
    before = curve.ShareOf(rows);
  }
  EXPECT_EQ(before, 1);
}

// The fewest rows: one less gets less.
TEST(HeatSummaryTest, CoverageIsTheCurveTheOtherWayRound) {
  const HeatSummary summary = Summarize(Merged({MadeUpHeat("t0", Zipf())}), 0);
  ASSERT_EQ(summary.coverage.size(), 7U);
  for (const HeatSummary::Point& point : summary.coverage) {
    const auto rows = static_cast<uint32_t>(point.rows);
    EXPECT_GE(TrueShare(rows), point.share - 1e-9);
    EXPECT_LT(TrueShare(rows - 1), point.share);
  }
}

// From one row in fifty, whose hottest may or may not be among them: the
// estimates are as close as they say.
TEST(HeatSummaryTest, EstimatesAreWithinTheirErrors) {
  const ClusterHeat heat =
      Merged({MadeUpHeat("t0", Zipf(), ~uint64_t{0} / 50)});
  const HeatSummary summary = Summarize(heat, 3);
  EXPECT_NEAR(summary.sample_share, 0.02, 1e-9);
  EXPECT_NEAR(summary.rows, kRows, 4 * summary.rows_error);
  EXPECT_LT(summary.rows_error, 0.03 * kRows);
  EXPECT_EQ(summary.hot_from, 512U);  // 32 hits
  double before = 0;
  EXPECT_NEAR(summary.named_rows, 1e6 / 512, 0.1 * 1e6 / 512);
  for (const HeatSummary::Point& point : summary.curve) {
    const double truth = TrueShare(static_cast<uint32_t>(point.rows));
    // Named rows are short of up to 15 lookups each here.
    EXPECT_NEAR(point.share, truth, 4 * point.share_error + 0.002)
        << point.rows << " rows";
    EXPECT_LT(point.share_error, 0.02) << point.rows << " rows";
    EXPECT_GE(point.share, before);
    before = point.share;
  }
  double lookups = 0;
  for (const HeatSummary::Bucket& bucket : summary.histogram) {
    lookups += bucket.lookups;
    const double truth =
        std::min<double>(std::floor(1e6 / bucket.least), kRows) -
        std::floor(1e6 / (bucket.most + 1));
    EXPECT_NEAR(bucket.rows, truth, 4 * bucket.rows_error + 0.02 * truth + 1)
        << bucket.least;
  }
  EXPECT_NEAR(lookups / static_cast<double>(heat.lookups), 1, 0.02);
  ASSERT_EQ(summary.top.size(), 3U);
  EXPECT_EQ(summary.top[2].row, 2U);
  EXPECT_NEAR(static_cast<double>(summary.top[2].lookups), 1e6 / 3, 16);
}

TEST(HeatSummaryTest, HotRowsThatMissMuchAreNotTaken) {
  ServerHeat server = MadeUpHeat("t0", Zipf(), ~uint64_t{0} / 50);
  server.hot_missed = 5000;
  EXPECT_EQ(Summarize(Merged({server}), 0).hot_from, 65'536U);
  server.hot_missed = ~uint64_t{0};
  EXPECT_FALSE(Summarize(Merged({server}), 0).hot_from.has_value());
}

TEST(HeatSummaryTest, PartitionsAreComparedAmongThoseAsked) {
  ServerHeat server = MadeUpHeat("t0", {});
  server.layers[0].partition_lookups = {100, 200, 0, 300, 0, 0, 0, 0, 0, 0};
  const HeatSummary summary = Summarize(Merged({server}), 0);
  ASSERT_EQ(summary.layers.size(), 1U);
  EXPECT_EQ(summary.layers[0].lookups, 600U);
  EXPECT_EQ(summary.layers[0].partitions, 10U);
  EXPECT_EQ(summary.layers[0].partitions_asked, 3U);
  EXPECT_DOUBLE_EQ(summary.layers[0].max_over_mean, 1.5);
  EXPECT_DOUBLE_EQ(summary.layers[0].p99_over_mean, 1.5);
}

TEST(HeatSummaryTest, OfNothing) {
  HeatReport report{.servers = {MadeUpHeat("t0", {})}};
  report.heat = Merged(report.servers);
  report.summary = Summarize(report.heat, 10);
  EXPECT_TRUE(report.summary.curve.empty());
  EXPECT_TRUE(report.summary.coverage.empty());
  EXPECT_THAT(HeatAsText(report), HasSubstr("0 lookups"));
  EXPECT_EQ(nlohmann::json::parse(HeatAsJson(report))["lookups"], 0);
}

// The flag gives a cache that has room for the rows, and not much more.
TEST(CacheMbTest, HasRoomForTheRows) {
  for (const double rows : {1.0, 1000.0, 12'345.0, 300'000.0}) {
    const uint64_t mb = CacheMbFor(rows, 264);
    ASSERT_GT(mb, 0U);
    const auto cache =
        RowCache::Create({.max_bytes = mb * 1'000'000, .row_bytes = 264});
    ASSERT_THAT(cache, IsOk());
    const double slots = static_cast<double>((*cache)->stats().slots);
    EXPECT_GE(slots, rows);
    if (mb > 8) {
      EXPECT_LT(slots, rows * 1.1);
    }
  }
  EXPECT_EQ(CacheMbFor(1e12, 264), 0U);
  EXPECT_EQ(CacheMbFor(1, 0), 0U);
}

TEST(HeatReportTest, SaysAllOfIt) {
  HeatReport report{.time = absl::FromUnixMillis(1234),
                    .duration = absl::Seconds(60),
                    .servers = {MadeUpHeat("t0", Zipf(), ~uint64_t{0} / 50)}};
  report.servers.push_back({.address = "10.0.0.2:1", .error = "no\nanswer"});
  report.heat = Merged(report.servers);
  report.summary = Summarize(report.heat, 1);
  const std::string text = HeatAsText(report);
  for (const char* part :
       {"lookups in 60 s on 1 server of table 0123456789ab", "of 1,000,000)",
        "2.00 % of all, and from ", " rows of 512 lookups and more that are",
        "failed: no answer", "LOOKUPS A ROW", "4 - 7", "HOTTEST ROWS",
        "MAX / MEAN"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  const auto json = nlohmann::json::parse(HeatAsJson(report));
  EXPECT_EQ(json["format"], "engram-heat/1");
  EXPECT_EQ(json["time_unix_ms"], 1234);
  EXPECT_EQ(json["seconds"], 60);
  EXPECT_EQ(json["servers"][1]["error"], "no\nanswer");
  EXPECT_EQ(json["lookups"], report.heat.lookups);
  EXPECT_EQ(json["hot_from"], 512);
  EXPECT_EQ(json["hottest_rows"].size(), report.summary.curve.size());
  EXPECT_EQ(json["coverage"].size(), 7U);
  EXPECT_EQ(json["layers"][0]["partition_lookups"].size(), 10U);
  EXPECT_EQ(json["top_rows"][0]["row"], 0);
}

}  // namespace
}  // namespace engram::ctl

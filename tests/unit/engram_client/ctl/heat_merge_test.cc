#include "engram_client/ctl/heat_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/made_up_heat.h"

namespace engram::ctl {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::pair<RowId, uint64_t>> RowsOf(
    const std::vector<RowHeat>& rows) {
  std::vector<std::pair<RowId, uint64_t>> out;
  for (const RowHeat& row : rows) {
    out.emplace_back(RowOfHeatKey(row.key), row.lookups);
  }
  return out;
}

TEST(HeatMergeTest, AddsUpWhatReplicasWereAskedFor) {
  std::vector<ServerHeat> servers = {
      MadeUpHeat("t0", {{1, 20}, {200'000, 3}}),
      MadeUpHeat("t1", {{1, 5}, {2, 40}, {3, 0}})};
  servers[0].hot_missed = 16;
  servers[1].hot_missed = 32;
  servers.push_back({.address = "dead", .error = "no answer"});
  const absl::StatusOr<ClusterHeat> heat = MergeHeat(servers);
  ASSERT_THAT(heat, IsOk());
  EXPECT_EQ(heat->lookups, 68U);
  EXPECT_EQ(heat->rows, 1'000'000U);
  EXPECT_THAT(
      RowsOf(heat->sample),
      ElementsAre(std::pair(2, 40), std::pair(1, 25), std::pair(200'000, 3)));
  EXPECT_THAT(RowsOf(heat->hot),
              ElementsAre(std::pair(2, 32), std::pair(1, 16)));
  EXPECT_EQ(heat->hot_missed, 48U);
  EXPECT_EQ(heat->layers[0].partition_lookups[0], 65U);
  EXPECT_EQ(heat->layers[0].partition_lookups[2], 3U);
}

// A server that has been asked for more rows has a smaller sample: only rows
// that would be in every sample are counted in full.
TEST(HeatMergeTest, TakesWhatIsInEverySample) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  std::map<uint32_t, uint64_t> lookups;
  for (uint32_t row = 0; row < 1000; ++row) lookups[row] = 1;
  const std::vector<ServerHeat> servers = {MadeUpHeat("t0", lookups),
                                           MadeUpHeat("t1", lookups, kHalf)};
  const absl::StatusOr<ClusterHeat> heat = MergeHeat(servers);
  ASSERT_THAT(heat, IsOk());
  EXPECT_EQ(heat->last_hash, kHalf);
  EXPECT_EQ(heat->sample.size(), servers[1].sample.size());
  for (const RowHeat& row : heat->sample) EXPECT_EQ(row.lookups, 2U);
}

TEST(HeatMergeTest, RefusesWhatDoesNotBelongTogether) {
  EXPECT_THAT(
      MergeHeat({{.address = "dead", .error = "no answer"}}),
      IsError(absl::StatusCode::kFailedPrecondition, HasSubstr("no server")));
  std::vector<ServerHeat> servers = {MadeUpHeat("t0", {}),
                                     MadeUpHeat("t1", {})};
  servers[1].version = "ffff";
  EXPECT_THAT(MergeHeat(servers), IsError(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("10.0.0.1:t1 ffff")));
  servers[1] = MadeUpHeat("t0", {});
  EXPECT_THAT(MergeHeat(servers), IsError(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("are one server")));
}

}  // namespace
}  // namespace engram::ctl

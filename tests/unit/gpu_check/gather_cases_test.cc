#include "tests/gpu/check/gather_cases.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::gpu_check {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

TEST(GatherCasesTest, CoverWordsAndBadRows) {
  std::set<uint32_t> remainders;
  size_t bad = 0;
  for (const bool quick : {false, true}) {
    for (const GatherCase& gather : GatherCases(quick, 1)) {
      remainders.insert(gather.row_bytes % 16);
      const auto table = TableBytes(gather, 2);
      const GatherResult wanted = WantedGather(gather, table, std::byte{0xA5});
      bad += wanted.first_bad != 0xFFFFFFFF ? 1 : 0;
      EXPECT_EQ(wanted.out.size(),
                gather.row_ids.size() * gather.row_bytes + kGatherGuard);
      EXPECT_EQ(gather.partition_stride() % 16, 0U);
      EXPECT_THAT(CompareGather(gather, wanted, wanted), IsOk());
    }
  }
  EXPECT_GE(remainders.size(), 5U);
  EXPECT_EQ(bad, 6U);
}

TEST(GatherCasesTest, ASlotIsItsRow) {
  GatherCase gather;
  gather.row_bytes = 3;
  gather.partition_rows_log2 = 1;
  gather.row_count = 3;
  gather.present = {true, true};
  gather.row_ids = {2, 0, 7};
  const auto table = TableBytes(gather, 5);
  const GatherResult wanted = WantedGather(gather, table, std::byte{0xEE});
  EXPECT_EQ(wanted.out[0], table[gather.partition_stride()]);
  EXPECT_EQ(wanted.out[3], table[0]);
  EXPECT_EQ(wanted.out[6], std::byte{0xEE});
  EXPECT_EQ(wanted.first_bad, 2U);
}

TEST(GatherCasesTest, FindsEveryKindOfError) {
  const GatherCase gather = GatherCases(true, 1)[3];
  const auto table = TableBytes(gather, 2);
  const GatherResult wanted = WantedGather(gather, table, std::byte{0xA5});
  GatherResult got = wanted;
  got.out[gather.row_bytes + 1] ^= std::byte{1};
  EXPECT_THAT(CompareGather(gather, got, wanted),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("slot 1")));
  got = wanted;
  got.out.back() = std::byte{0};
  EXPECT_THAT(CompareGather(gather, got, wanted),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("past the end")));
  got = wanted;
  got.first_bad = 4;
  EXPECT_THAT(CompareGather(gather, got, wanted),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("bad row")));
}

}  // namespace
}  // namespace engram::gpu_check

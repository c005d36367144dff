#include "tests/gpu/check/projection_cases.h"

#include <vector>

#include "absl/types/span.h"
#include "core/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::gpu_check {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

class ProjectionCasesTest : public testing::Test {
 protected:
  ProjectionCasesTest()
      : pool_({.thread_count = 1}),
        random_(1),
        weights_(MakeWeights(96, 40, random_)),
        values_(RandomTokens(random_, 11, 96)),
        kv_(*ProjectOnCpu(weights_, values_, &pool_)) {}

  // Every output, so that one that is off is among them.
  absl::Status Compare(const std::vector<uint16_t>& kv) {
    return CompareWithDouble(weights_, values_, kv, 20'000, random_);
  }

  ThreadPool pool_;
  Random random_;
  const RandomWeights weights_;
  const std::vector<uint16_t> values_;
  const std::vector<uint16_t> kv_;
};

TEST_F(ProjectionCasesTest, TheCpuIsRight) {
  EXPECT_EQ(weights_.scales.size(), 2U * 3U);
  EXPECT_EQ(kv_.size(), 11U * 40U);
  EXPECT_THAT(Compare(kv_), IsOk());
}

TEST_F(ProjectionCasesTest, FindsAWrongSum) {
  std::vector<uint16_t> wrong = kv_;
  wrong[5 * 40 + 7] ^= 0x10;
  EXPECT_THAT(Compare(wrong), IsError(absl::StatusCode::kDataLoss,
                                      HasSubstr("kv of token 5 at 7")));
  wrong = kv_;
  wrong[3] = 0x7FC0;  // NaN
  EXPECT_THAT(Compare(wrong), IsError(absl::StatusCode::kDataLoss,
                                      HasSubstr("kv of token 0 at 3")));
}

TEST_F(ProjectionCasesTest, LayoutsHoldTheSameTokens) {
  const auto rows = InLayout(values_, 96, 2, 9, TokenLayout::kRowMajor);
  const auto fragments = InLayout(values_, 96, 2, 9, TokenLayout::kFragments);
  ASSERT_EQ(rows.size(), FragmentCount(9, 96));
  ASSERT_EQ(fragments.size(), FragmentCount(9, 96));
  for (size_t token = 0; token < 16; ++token) {
    for (size_t k = 0; k < 96; ++k) {
      const uint16_t wanted = token < 9 ? values_[(2 + token) * 96 + k] : 0;
      EXPECT_EQ(fragments[FragmentIndex(token, k, 96)], wanted);
      EXPECT_EQ(rows[token * 96 + k], wanted);
    }
  }
}

}  // namespace
}  // namespace engram::gpu_check

#include "compute/project/projection.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/thread_pool.h"
#include "core/model/number_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/unit/compute/project/test_weights.h"

namespace engram {
namespace {

using test::RandomRows;
using test::TestWeights;
using ::testing::HasSubstr;

std::vector<uint16_t> Project(const Projection& projection,
                              absl::Span<const float> rows, ThreadPool* pool) {
  std::vector<uint16_t> kv(rows.size() / projection.in() * projection.out(),
                           0xDEAD);
  projection.Project(rows, absl::MakeSpan(kv), pool);
  return kv;
}

// The instruction sets that a test runs under, one after another.
class ProjectionTest : public testing::Test {
 protected:
  ProjectionTest() : pool_({.thread_count = 2}) {}
  ~ProjectionTest() override { UseTarget(0); }

  // 0: the best. Highway takes the baseline where this kernel leaves one out.
  static void UseTarget(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  std::unique_ptr<const Projection> Make(const TestWeights& weights) {
    auto projection = Projection::Create(weights.View(), &pool_);
    EXPECT_EQ(projection.status(), absl::OkStatus());
    return *std::move(projection);
  }

  ThreadPool pool_;
};

TEST_F(ProjectionTest, CloseToDoublePrecision) {
  for (const uint32_t out : {32U, 288U, 77U, 1U}) {
    const TestWeights weights(256, out, out);
    const auto projection = Make(weights);
    const std::vector<float> rows = RandomRows(9, 256, 2);
    const std::vector<uint16_t> kv = Project(*projection, rows, &pool_);
    for (size_t m = 0; m < 9; ++m) {
      for (size_t n = 0; n < out; ++n) {
        const auto [wanted, magnitude] = weights.Product(&rows[m * 256], n);
        ASSERT_NEAR(Bf16ToFloat(kv[m * out + n]), wanted,
                    std::fabs(wanted) / 256 + magnitude * 1e-6)
            << m << " " << n;
      }
    }
  }
}

// The order of the sums, written down once more for one column at a time.
TEST_F(ProjectionTest, SumsInTheOrderOfKByBlocksOf32) {
  const TestWeights weights(320, 70, 3);
  const auto projection = Make(weights);
  const std::vector<float> rows = RandomRows(7, 320, 4);
  const std::vector<uint16_t> kv = Project(*projection, rows, &pool_);
  for (size_t m = 0; m < 7; ++m) {
    for (size_t n = 0; n < 70; ++n) {
      float sum = 0;
      for (size_t block = 0; block < 10; ++block) {
        float part = 0;
        for (size_t k = block * 32; k < block * 32 + 32; ++k) {
          part = std::fma(rows[m * 320 + k],
                          E4m3ToFloat(weights.codes[n * 320 + k]), part);
        }
        sum = std::fma(part, E8m0ToFloat(weights.scales[n / 32 * 10 + block]),
                       sum);
      }
      ASSERT_EQ(kv[m * 70 + n], FloatToBf16(sum)) << m << " " << n;
    }
  }
}

TEST_F(ProjectionTest, DecodesEveryCode) {
  TestWeights weights(32, 256, 5);
  for (size_t n = 0; n < 256; ++n) {
    for (size_t k = 0; k < 32; ++k) {
      const auto code = static_cast<uint8_t>(n + k);
      weights.codes[n * 32 + k] = (code & 0x7F) == 0x7F ? 0 : code;
    }
  }
  for (const size_t tokens : {1, 4, 5, 12}) {
    std::vector<float> rows(tokens * 32);
    for (size_t m = 0; m < tokens; ++m) rows[m * 32 + m] = 1;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      UseTarget(target);
      const auto kv = Project(*Make(weights), rows, &pool_);
      for (size_t m = 0; m < tokens; ++m) {
        for (size_t n = 0; n < 256; ++n) {
          ASSERT_EQ(Bf16ToFloat(kv[m * 256 + n]), weights.Weight(n, m))
              << hwy::TargetName(target) << " " << m << " " << n;
        }
      }
    }
  }
}

TEST_F(ProjectionTest, ExtremeScalesAreExact) {
  TestWeights weights(32, 64, 6);
  std::fill(weights.codes.begin(), weights.codes.end(), 0x38);  // 1
  weights.scales = {0, 254};
  std::vector<float> rows(32);
  rows[0] = 1;
  const auto kv = Project(*Make(weights), rows, &pool_);
  EXPECT_EQ(Bf16ToFloat(kv[0]), 0x1p-127F);
  EXPECT_EQ(Bf16ToFloat(kv[32]), 0x1p127F);
}

TEST_F(ProjectionTest, SameBitsForAnyNumberOfTokensAndThreads) {
  const TestWeights weights(192, 288, 7);
  const auto projection = Make(weights);
  constexpr size_t kTokens = 300;  // more than one tile
  const std::vector<float> rows = RandomRows(kTokens, 192, 8);
  const std::vector<uint16_t> wanted = Project(*projection, rows, &pool_);
  ThreadPool one({.thread_count = 1});
  ThreadPool five({.thread_count = 5});
  EXPECT_EQ(Project(*projection, rows, &one), wanted);
  EXPECT_EQ(Project(*projection, rows, &five), wanted);
  for (const size_t step : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 16, 25, 64, 257}) {
    std::vector<uint16_t> kv;
    for (size_t m = 0; m < kTokens; m += step) {
      const size_t tokens = std::min(step, kTokens - m);
      const auto part = Project(
          *projection, absl::MakeConstSpan(rows).subspan(m * 192, tokens * 192),
          &pool_);
      kv.insert(kv.end(), part.begin(), part.end());
    }
    ASSERT_EQ(kv, wanted) << "by " << step;
  }
}

TEST_F(ProjectionTest, SameBitsOnEveryInstructionSet) {
  const TestWeights weights(192, 100, 9);
  const auto projection = Make(weights);
  for (const size_t tokens : {1, 3, 4, 13, 40}) {
    const std::vector<float> rows = RandomRows(tokens, 192, 10);
    UseTarget(0);
    const std::vector<uint16_t> wanted = Project(*projection, rows, &pool_);
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      UseTarget(target);
      ASSERT_EQ(Project(*projection, rows, &pool_), wanted)
          << hwy::TargetName(target) << ", " << tokens << " tokens";
    }
  }
}

TEST_F(ProjectionTest, NoTokens) {
  EXPECT_TRUE(Project(*Make(TestWeights(32, 32, 1)), {}, &pool_).empty());
}

TEST_F(ProjectionTest, CallsMayRunAtTheSameTime) {
  const TestWeights weights(128, 96, 11);
  const auto projection = Make(weights);
  const std::vector<float> rows = RandomRows(20, 128, 12);
  const std::vector<uint16_t> wanted = Project(*projection, rows, &pool_);
  std::vector<std::vector<uint16_t>> got(16);
  pool_.ParallelFor(got.size(), [&](size_t i) {
    got[i] = Project(*projection, rows, &pool_);
  });
  for (const auto& kv : got) EXPECT_EQ(kv, wanted);
}

void ExpectRefused(const TestWeights& weights, const std::string& message) {
  ThreadPool pool({.thread_count = 1});
  const auto status = Projection::Create(weights.View(), &pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST_F(ProjectionTest, RefusesSizesThatDoNotFit) {
  TestWeights weights(64, 40, 13);
  weights.codes.pop_back();
  ExpectRefused(weights, "has 2559 codes, must have 2560");
  weights = TestWeights(64, 40, 13);
  weights.scales.push_back(127);
  ExpectRefused(weights, "has 5 scales, must have 4");
  weights.in = 63;
  ExpectRefused(weights, "must be a multiple of 32");
  weights.in = 0;
  ExpectRefused(weights, "must be a multiple of 32");
  weights.in = 64;
  weights.out = 0;
  ExpectRefused(weights, "projection of 64 to 0");
}

TEST_F(ProjectionTest, RefusesNan) {
  TestWeights weights(64, 40, 14);
  weights.codes[35 * 64 + 63] = 0xFF;
  ExpectRefused(weights, "NaN codes among rows 32 to 39");
  weights = TestWeights(64, 40, 14);
  weights.scales[3] = 255;
  ExpectRefused(weights, "scale 3 of the projection weight is NaN");
}

}  // namespace
}  // namespace engram

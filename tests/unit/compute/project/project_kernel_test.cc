#include "compute/project/project_kernel.cuh"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/project/project_shape.h"
#include "core/model/number_formats.h"
#include "gtest/gtest.h"
#include "tests/unit/compute/project/emulated_projection.h"
#include "tests/unit/compute/project/test_weights.h"

namespace engram {
namespace {

using test::EmulatedProjection;
using test::RandomRows;
using test::TestWeights;

class ProjectKernelTest : public testing::TestWithParam<ProjectTileSize> {};

double UlpOfBf16(double value) {
  return value == 0 ? 0 : std::ldexp(1, std::ilogb(value) - 7);
}

TEST_P(ProjectKernelTest, CloseToDoublePrecision) {
  struct Sizes {
    uint32_t in, out;
  };
  for (const auto& [in, out] : {Sizes{32, 1}, Sizes{32, 40}, Sizes{256, 288},
                                Sizes{672, 77}, Sizes{160, 70}}) {
    const TestWeights weights(in, out, in + out);
    const EmulatedProjection projection(weights.View());
    const size_t tokens = 11;
    const std::vector<float> rows = RandomRows(tokens, in, 2);
    const std::vector<uint16_t> kv = projection.Run(GetParam(), rows);
    for (size_t m = 0; m < tokens; ++m) {
      double largest = 0;
      for (size_t n = 0; n < out; ++n) {
        const double wanted = weights.Product(&rows[m * in], n).first;
        largest = std::max(largest, std::fabs(wanted));
      }
      for (size_t n = 0; n < out; ++n) {
        const double wanted = weights.Product(&rows[m * in], n).first;
        ASSERT_NEAR(Bf16ToFloat(kv[m * out + n]), wanted,
                    std::max(UlpOfBf16(wanted), 1e-5 * largest))
            << in << " x " << out << ": " << m << " " << n;
      }
    }
  }
}

// Every value must be the one of its token alone, in the smallest tile.
TEST_P(ProjectKernelTest, SameBitsForAnyNumberOfTokensAtAnyPlace) {
  constexpr size_t kTokens = 139;
  struct Sizes {
    uint32_t in, out;
  };
  for (const auto& [in, out] :
       {Sizes{32, 70}, Sizes{224, 264}, Sizes{640, 36}}) {
    const TestWeights weights(in, out, in + out);
    const EmulatedProjection projection(weights.View());
    const std::vector<float> all_rows = RandomRows(kTokens, in, 3);
    const auto rows = absl::MakeConstSpan(all_rows);
    std::vector<uint16_t> wanted;
    for (size_t m = 0; m < kTokens; ++m) {
      const auto kv =
          projection.Run(ProjectTileSize::k8Tokens, rows.subspan(m * in, in));
      wanted.insert(wanted.end(), kv.begin(), kv.end());
    }
    EXPECT_EQ(projection.Run(GetParam(), rows.subspan(0, in)),
              std::vector<uint16_t>(wanted.begin(), wanted.begin() + out));
    for (const size_t step : {9, 31, 64, 139}) {
      std::vector<uint16_t> kv;
      for (size_t m = 0; m < kTokens; m += step) {
        const size_t tokens = std::min(step, kTokens - m);
        const auto part =
            projection.Run(GetParam(), rows.subspan(m * in, tokens * in), m);
        kv.insert(kv.end(), part.begin(), part.end());
      }
      ASSERT_EQ(kv, wanted) << in << " x " << out << " by " << step;
    }
  }
}

TEST_P(ProjectKernelTest, SameBitsInAnyOrderOfThreads) {
  const TestWeights weights(416, 100, 4);
  const EmulatedProjection projection(weights.View());
  const std::vector<float> rows = RandomRows(20, 416, 5);
  const std::vector<uint16_t> wanted = projection.Run(GetParam(), rows, 0);
  for (uint64_t seed = 1; seed < 8; ++seed) {
    EXPECT_EQ(projection.Run(GetParam(), rows, seed), wanted) << seed;
  }
}

TEST_P(ProjectKernelTest, DecodesEveryCode) {
  TestWeights weights(32, 256, 5);
  for (size_t n = 0; n < 256; ++n) {
    for (size_t k = 0; k < 32; ++k) {
      const auto code = static_cast<uint8_t>(n + k);
      weights.codes[n * 32 + k] = (code & 0x7F) == 0x7F ? 0 : code;
    }
  }
  std::vector<float> rows(32 * 32);
  for (size_t m = 0; m < 32; ++m) rows[m * 32 + m] = 1;
  const EmulatedProjection projection(weights.View());
  const std::vector<uint16_t> kv = projection.Run(GetParam(), rows);
  for (size_t m = 0; m < 32; ++m) {
    for (size_t n = 0; n < 256; ++n) {
      ASSERT_EQ(Bf16ToFloat(kv[m * 256 + n]), weights.Weight(n, m))
          << m << " " << n;
    }
  }
}

TEST_P(ProjectKernelTest, ExtremeScalesAreExact) {
  TestWeights weights(32, 64, 6);
  std::fill(weights.codes.begin(), weights.codes.end(), 0x38);  // 1
  weights.scales = {0, 254};
  std::vector<float> rows(32);
  rows[0] = 1;
  const EmulatedProjection projection(weights.View());
  const std::vector<uint16_t> kv = projection.Run(GetParam(), rows);
  EXPECT_EQ(Bf16ToFloat(kv[0]), 0x1p-127F);
  EXPECT_EQ(Bf16ToFloat(kv[32]), 0x1p127F);
}

// A token that is not a number spoils nothing but its own values.
TEST_P(ProjectKernelTest, TokensDoNotMix) {
  const TestWeights weights(64, 48, 7);
  const EmulatedProjection projection(weights.View());
  std::vector<float> rows = RandomRows(12, 64, 8);
  const std::vector<uint16_t> wanted = projection.Run(GetParam(), rows);
  rows[5 * 64 + 40] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<uint16_t> kv = projection.Run(GetParam(), rows);
  for (size_t i = 0; i < kv.size(); ++i) {
    if (i / 48 == 5) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(kv[i]))) << i;
    } else {
      EXPECT_EQ(kv[i], wanted[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiles, ProjectKernelTest, testing::ValuesIn(kProjectTileSizes),
    [](const testing::TestParamInfo<ProjectTileSize>& info) {
      return absl::StrCat("Of", 8 << static_cast<int>(info.param), "Tokens");
    });

}  // namespace
}  // namespace engram

#include "compute/project/weight_pack.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/project/fragment_layout.h"
#include "core/base/thread_pool.h"
#include "core/model/number_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/compute/project/test_weights.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::TestWeights;
using ::testing::HasSubstr;

TEST(WeightPackTest, EveryCodeAndScaleIsInItsPlaceTheRestZero) {
  ThreadPool pool({.thread_count = 2});
  for (const uint32_t in : {32U, 128U, 160U}) {
    for (const uint32_t out : {1U, 32U, 77U}) {
      const TestWeights weights(in, out, in + out);
      std::vector<uint8_t> codes(PackedCodeCount(out, in));
      std::vector<float> scales(PackedScaleCount(out, in));
      PackWeights(weights.View(), &pool, absl::MakeSpan(codes),
                  absl::MakeSpan(scales));
      size_t zeros = codes.size();
      for (size_t n = 0; n < out; ++n) {
        for (size_t k = 0; k < in; ++k) {
          uint8_t& code = codes[PackedCodeIndex(n, k, in)];
          ASSERT_EQ(code, weights.codes[n * in + k]) << n << " " << k;
          code = 0;
          --zeros;
          ASSERT_EQ(scales[PackedScaleIndex(n, k, in)],
                    E8m0ToFloat(weights.scales[n / 32 * (in / 32) + k / 32]));
        }
      }
      EXPECT_EQ(codes, std::vector<uint8_t>(codes.size()));
      EXPECT_EQ(zeros, codes.size() - size_t{in} * out);
    }
  }
}

TEST(WeightPackTest, ExpandsToTheExactValues) {
  ThreadPool pool({.thread_count = 2});
  TestWeights weights(96, 77, 1);
  weights.scales[0] = 3;
  weights.scales[1] = 246;
  std::vector<uint16_t> values(weights.codes.size());
  ASSERT_THAT(ExpandWeights(weights.View(), &pool, absl::MakeSpan(values)),
              IsOk());
  for (size_t n = 0; n < weights.out; ++n) {
    for (size_t k = 0; k < weights.in; ++k) {
      ASSERT_EQ(Bf16ToFloat(values[n * weights.in + k]), weights.Weight(n, k));
    }
  }
}

// 2^-124 * 2^-9 is the smallest bf16; 448 * 2^120 overflows.
TEST(WeightPackTest, RefusesWhatBf16CannotHold) {
  ThreadPool pool({.thread_count = 1});
  TestWeights weights(64, 40, 2);
  std::vector<uint16_t> values(weights.codes.size());
  for (uint8_t& code : weights.codes) code = 0x7E;  // 448
  weights.codes[39 * 64 + 63] = 0x01;               // 2^-9
  weights.scales = {119, 119, 119, 3};
  EXPECT_THAT(ExpandWeights(weights.View(), &pool, absl::MakeSpan(values)),
              IsOk());
  weights.scales[3] = 2;
  EXPECT_THAT(ExpandWeights(weights.View(), &pool, absl::MakeSpan(values)),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("scale 3 of the projection weight is 2^-125")));
  weights.scales = {247, 119, 119, 3};
  EXPECT_THAT(ExpandWeights(weights.View(), &pool, absl::MakeSpan(values)),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("scale 0 of the projection weight is 2^120")));
}

TEST(WeightPackTest, BytesOnAGpu) {
  constexpr uint64_t kCodes = uint64_t{25600} * 6144;
  constexpr uint64_t kScales = uint64_t{800} * 192 * 4;
  EXPECT_EQ(GpuWeightBytes(6144, 25600, ProjectionMode::kInvariant),
            kCodes + kScales);
  EXPECT_EQ(GpuWeightBytes(6144, 25600, ProjectionMode::kFast),
            kCodes + kScales + 2 * kCodes);
  EXPECT_EQ(GpuWeightBytes(32, 1, ProjectionMode::kInvariant),
            32U * 128 + 4 * 4);
}

}  // namespace
}  // namespace engram

#include "compute/project/cublaslt_product.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/project/weight_pack.h"
#include "core/base/thread_pool.h"
#include "core/model/number_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/compute/project/fake_cublaslt.h"
#include "tests/unit/compute/project/test_weights.h"

namespace engram {
namespace {

using test::FakeCublasLt;
using test::FakeCublasLtStateNow;
using test::IsError;
using test::IsOk;
using test::RandomRows;
using test::TestWeights;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CublasLtProductTest, TheProductOfTokensAndWeights) {
  ThreadPool pool({.thread_count = 1});
  const TestWeights weights(64, 40, 1);
  std::vector<uint16_t> values(weights.codes.size());
  ASSERT_THAT(ExpandWeights(weights.View(), &pool, absl::MakeSpan(values)),
              IsOk());
  const std::vector<float> rows = RandomRows(5, 64, 2);
  std::vector<uint16_t> tokens;
  for (const float value : rows) tokens.push_back(FloatToBf16(value));
  {
    const auto product = CublasLtProduct::Create(
        FakeCublasLt(), {.in = 64, .out = 40, .max_tokens = 6});
    ASSERT_THAT(product, IsOk());
    for (const size_t count : {1, 3, 5}) {
      std::vector<uint16_t> kv(count * 40 + 1, 0xDEAD);
      ASSERT_THAT((*product)->Multiply({.weights = values.data(),
                                        .tokens = tokens.data(),
                                        .kv = kv.data(),
                                        .token_count = count},
                                       nullptr),
                  IsOk());
      for (size_t i = 0; i < count * 40; ++i) {
        const double wanted = weights.Product(&rows[i / 40 * 64], i % 40).first;
        ASSERT_EQ(kv[i], FloatToBf16(static_cast<float>(wanted))) << i;
      }
      EXPECT_EQ(kv.back(), 0xDEAD);
    }
  }
  EXPECT_EQ(FakeCublasLtStateNow().objects, 0);
}

TEST(CublasLtProductTest, ChoosesOnceForEachPowerOfTwo) {
  const auto product = CublasLtProduct::Create(
      FakeCublasLt(), {.in = 32, .out = 8, .max_tokens = 9});
  ASSERT_THAT(product, IsOk());
  EXPECT_THAT(FakeCublasLtStateNow().chosen_for, ElementsAre(1, 2, 4, 8, 16));
  EXPECT_EQ(FakeCublasLtStateNow().workspace_bytes, 0U);
  EXPECT_EQ(FakeCublasLtStateNow().alignment, 16U);
  const std::vector<uint16_t> ones(32 * 9, 0x3F80);
  std::vector<uint16_t> kv(8 * 9);
  const auto algorithm_of = [&](size_t count) {
    EXPECT_THAT((*product)->Multiply({.weights = ones.data(),
                                      .tokens = ones.data(),
                                      .kv = kv.data(),
                                      .token_count = count},
                                     nullptr),
                IsOk());
    return FakeCublasLtStateNow().used;
  };
  EXPECT_EQ(algorithm_of(1), 1U);
  EXPECT_EQ(algorithm_of(2), 2U);
  EXPECT_EQ(algorithm_of(3), 4U);
  EXPECT_EQ(algorithm_of(8), 8U);
  EXPECT_EQ(algorithm_of(9), 16U);
  EXPECT_EQ(FakeCublasLtStateNow().chosen_for.size(), 5U);
  // One that does not do for exactly so many tokens.
  FakeCublasLtStateNow().refused_tokens = 7;
  EXPECT_EQ(algorithm_of(7), 7U);
  EXPECT_EQ(algorithm_of(6), 8U);
}

TEST(CublasLtProductTest, SaysWhatFailed) {
  CublasLtApi api = FakeCublasLt();
  FakeCublasLtStateNow().no_algorithm = true;
  const FastProduct::Sizes sizes = {.in = 32, .out = 8, .max_tokens = 1};
  EXPECT_THAT(CublasLtProduct::Create(api, sizes),
              IsError(absl::StatusCode::kUnimplemented,
                      HasSubstr("no algorithm for a product of 32 to 8")));
  EXPECT_EQ(FakeCublasLtStateNow().objects, 0);
  api.create = [](cublasLtHandle_t*) { return CUBLAS_STATUS_NOT_INITIALIZED; };
  EXPECT_THAT(
      CublasLtProduct::Create(api, sizes),
      IsError(absl::StatusCode::kInternal,
              HasSubstr("starting cuBLASLt: CUBLAS_STATUS_NOT_INITIALIZED")));
  EXPECT_EQ(FakeCublasLtStateNow().objects, 0);
}

}  // namespace
}  // namespace engram

// That the comparisons which other tests rely on can fail.

#include "tests/testing/step_compare.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/model/number_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<uint16_t> Bf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(FloatToBf16(value));
  return bits;
}

// Two tokens, of which the second is dead, one stream of four features.
class StepCompareTest : public testing::Test {
 protected:
  StepCompareTest() {
    config_.hc_mult = 1;
    config_.dim = 4;
    config_.norm_eps = 1e-20;
    weights_ = {1, 4, 1e-20F, {1, 1, 1, 1}};
    input_.dtype = StreamDtype::kF32;
    input_.tokens = 2;
    input_.mask = {1, 0};
    const std::vector<float> h = {1, -2, 3, 0.5F, 9, 9, 9, 9};
    input_.streams.resize(h.size() * sizeof(float));
    std::memcpy(input_.streams.data(), h.data(), input_.streams.size());
    result_.kv = Bf16({0.5F, 1, 2, 0.25F, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0});
    result_.value = Bf16({1, 2, 3, 4, 0, 0, 0, 0});
    result_.gate.resize(2);
    result_.streams.resize(input_.streams.size());
    ComputeGate(weights_, input_.dtype, input_.streams, result_.kv, input_.mask,
                absl::MakeSpan(result_.gate));
    AddContribution(weights_, input_.dtype, input_.streams, result_.kv,
                    result_.gate, input_.mask, absl::MakeSpan(result_.streams));
  }

  static void SetStream(StepResult& result, size_t i, float value) {
    std::memcpy(&result.streams[4 * i], &value, sizeof(value));
  }

  EngramConfig config_;
  GateWeights weights_;
  StepInput input_;
  StepResult result_;
};

TEST_F(StepCompareTest, WhatIsRightPasses) {
  EXPECT_THAT(CompareWithOwnKv(weights_, Inputs::kGolden, input_, result_),
              IsOk());
  EXPECT_THAT(
      CompareWithWanted(config_, Inputs::kGolden, input_, result_, result_),
      IsOk());
  EXPECT_THAT(CompareDead(config_, input_, result_), IsOk());
  EXPECT_THAT(CompareContribution(config_, input_, result_), IsOk());
  EXPECT_THAT(CompareBits(result_, result_), IsOk());
}

TEST_F(StepCompareTest, AWrongGateFails) {
  for (const float off : {1e-5F, kNan}) {
    StepResult wrong = result_;
    wrong.gate[0] += off;
    EXPECT_THAT(CompareWithOwnKv(weights_, Inputs::kGolden, input_, wrong),
                IsError(absl::StatusCode::kDataLoss, HasSubstr("gate")));
  }
  StepResult wrong = result_;
  wrong.gate[0] += 6e-4F;
  EXPECT_THAT(
      CompareWithWanted(config_, Inputs::kGolden, input_, wrong, result_),
      IsError(absl::StatusCode::kDataLoss, HasSubstr("gate")));
}

TEST_F(StepCompareTest, NearADotOf0TheDotMayStandForTheGate) {
  StepResult wanted = result_;
  StepResult got = result_;
  wanted.gate[0] = 0.5F;
  got.gate[0] = 0.505F;  // a dot of 4e-4
  EXPECT_THAT(CompareWithWanted(config_, Inputs::kGolden, input_, got, wanted),
              Not(IsOk()));
  EXPECT_THAT(CompareWithWanted(config_, Inputs::kRandom, input_, got, wanted),
              IsOk());
  for (const float off : {0.6F, kNan}) {
    got.gate[0] = off;
    EXPECT_THAT(
        CompareWithWanted(config_, Inputs::kRandom, input_, got, wanted),
        Not(IsOk()));
  }
}

TEST_F(StepCompareTest, AValueThatCancelsCountsWithItsOwnDifference) {
  StepResult got = result_;
  const float gate = result_.gate[0];
  got.kv[4] = FloatToBf16(1.25F);  // the first value, 1 before
  SetStream(got, 0, 1 + gate * 1.25F);
  EXPECT_THAT(CompareWithWanted(config_, Inputs::kGolden, input_, got, result_),
              Not(IsOk()));
  EXPECT_THAT(CompareWithWanted(config_, Inputs::kRandom, input_, got, result_),
              IsOk());
  SetStream(got, 0, 1 + gate * 1.5F);
  EXPECT_THAT(CompareWithWanted(config_, Inputs::kRandom, input_, got, result_),
              Not(IsOk()));
}

TEST_F(StepCompareTest, AWrongStreamFails) {
  for (const float value :
       {3.1F, kNan, std::numeric_limits<float>::infinity()}) {
    StepResult wrong = result_;
    SetStream(wrong, 2, value);
    EXPECT_THAT(CompareWithOwnKv(weights_, Inputs::kGolden, input_, wrong),
                IsError(absl::StatusCode::kDataLoss,
                        HasSubstr("streams of token 0 at 2")));
    EXPECT_THAT(
        CompareWithWanted(config_, Inputs::kGolden, input_, wrong, result_),
        Not(IsOk()));
    EXPECT_THAT(
        CompareWithWanted(config_, Inputs::kRandom, input_, wrong, result_),
        Not(IsOk()));
    EXPECT_THAT(CompareContribution(config_, input_, wrong), Not(IsOk()));
    EXPECT_THAT(CompareBits(wrong, result_), Not(IsOk()));
  }
}

TEST_F(StepCompareTest, ADeadTokenThatWasTouchedFails) {
  StepResult wrong = result_;
  SetStream(wrong, 5, 9.000001F);
  EXPECT_THAT(CompareDead(config_, input_, wrong),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("dead token 1")));
  wrong = result_;
  wrong.gate[1] = -0.0F;
  EXPECT_THAT(CompareDead(config_, input_, wrong), Not(IsOk()));
  wrong = result_;
  wrong.value[7] = 1;
  EXPECT_THAT(CompareDead(config_, input_, wrong), Not(IsOk()));
}

TEST_F(StepCompareTest, BitsOfMinusZeroDiffer) {
  StepResult wrong = result_;
  wrong.gate[1] = -0.0F;
  EXPECT_THAT(CompareBits(wrong, result_),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("gate")));
}

TEST_F(StepCompareTest, KvMayBeAnUlpOff) {
  const std::vector<uint16_t> wanted = Bf16({1, 2, 300, 1e-6F});
  std::vector<uint16_t> kv = wanted;
  ++kv[0];
  EXPECT_EQ(*CountEqualKv(4, kv, wanted), 3U);
  ++kv[0];
  EXPECT_THAT(
      CountEqualKv(4, kv, wanted),
      IsError(absl::StatusCode::kDataLoss, HasSubstr("kv of token 0 at 0")));
  // A sum that cancels is measured by the largest of its position.
  kv = wanted;
  kv[3] = FloatToBf16(0.002F);
  EXPECT_EQ(*CountEqualKv(4, kv, wanted), 3U);
  kv[3] = FloatToBf16(0.004F);
  EXPECT_THAT(CountEqualKv(4, kv, wanted), Not(IsOk()));
  kv[3] = FloatToBf16(kNan);
  EXPECT_THAT(CountEqualKv(4, kv, wanted), Not(IsOk()));
}

TEST_F(StepCompareTest, NearlyAllOfKvIsEqual) {
  EXPECT_THAT(CheckEqualShare(995, 1000), IsOk());
  EXPECT_THAT(CheckEqualShare(994, 1000), Not(IsOk()));
  EXPECT_THAT(CheckEqualShare(0, 0), Not(IsOk()));
}

TEST_F(StepCompareTest, UlpsOfBothFormats) {
  EXPECT_EQ(UlpOf(StreamDtype::kBf16, 1.5), 0x1p-7);
  EXPECT_EQ(UlpOf(StreamDtype::kF32, -3), 0x1p-22);
  EXPECT_EQ(UlpOf(StreamDtype::kF32, 0), UlpOf(StreamDtype::kF32, 1e-44));
}

}  // namespace
}  // namespace engram::test

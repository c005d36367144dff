#include "tests/gpu/check/gate_cases.h"

#include <cstring>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::gpu_check {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint8_t kPoison = 0x5A;

class GateCasesTest : public testing::TestWithParam<StreamDtype> {
 protected:
  GateCasesTest() : random_(1) {
    gate_.hc = 2;
    gate_.dim = 48;
    gate_.tokens = 7;
    gate_.dtype = GetParam();
    gate_.some_dead = true;
    input_ = MakeGateInput(gate_, random_);
    all_ = OnCpu();
  }

  GateResult OnCpu() const {
    GateResult result;
    result.gate.resize(gate_.tokens * gate_.hc);
    result.streams.resize(input_.streams.size());
    result.value.resize(gate_.tokens * gate_.dim);
    ComputeGate(input_.weights, gate_.dtype, input_.streams, input_.kv,
                input_.mask, absl::MakeSpan(result.gate));
    AddContribution(input_.weights, gate_.dtype, input_.streams, input_.kv,
                    result.gate, input_.mask, absl::MakeSpan(result.streams));
    const size_t width = size_t{gate_.hc + 1} * gate_.dim;
    for (size_t t = 0; t < gate_.tokens; ++t) {
      if (input_.mask[t] == 0) continue;
      std::memcpy(&result.value[t * gate_.dim],
                  &input_.kv[t * width + gate_.hc * gate_.dim], gate_.dim * 2);
    }
    return result;
  }

  absl::Status Compare(const GateResult& result) {
    return CompareGate(gate_, input_, result, counts_);
  }

  Random random_;
  GateCase gate_;
  GateInput input_;
  GateResult all_;
  GateCounts counts_;
};

TEST_P(GateCasesTest, TheCpuIsRight) {
  EXPECT_THAT(Compare(all_), IsOk());
  EXPECT_EQ(counts_.gates, 14U);
  EXPECT_EQ(counts_.differ, 0U);
  EXPECT_EQ(input_.live_kv.size() % (3 * 48), 0U);
  EXPECT_LT(input_.live_kv.size(), input_.kv.size());
}

TEST_P(GateCasesTest, FindsWrongOutputs) {
  GateResult wrong = all_;
  wrong.gate.back() += 1e-4F;
  EXPECT_THAT(Compare(wrong),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("gate 13")));
  wrong = all_;
  wrong.streams.back() ^= std::byte{0x80};
  EXPECT_THAT(Compare(wrong),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("token 6")));
  wrong = all_;
  wrong.value.front() = 1;  // of a dead token
  EXPECT_THAT(Compare(wrong),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("value 0")));
}

TEST_P(GateCasesTest, AnOutputThatIsNotWantedStaysPoison) {
  GateResult some = all_;
  std::memset(some.gate.data(), kPoison, some.gate.size() * sizeof(float));
  gate_.outputs = 5;
  EXPECT_THAT(CompareGateSet(gate_, input_, some, all_, kPoison), IsOk());
  gate_.outputs = 7;
  EXPECT_THAT(CompareGateSet(gate_, input_, some, all_, kPoison),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("gate")));
  gate_.outputs = 4;
  EXPECT_THAT(CompareGateSet(gate_, input_, some, all_, kPoison),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("streams")));
  gate_.in_place = true;
  EXPECT_THAT(CompareGateSet(gate_, input_, some, all_, kPoison), Not(IsOk()));
  some.streams = input_.streams;
  EXPECT_THAT(CompareGateSet(gate_, input_, some, all_, kPoison), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Dtypes, GateCasesTest,
                         testing::Values(StreamDtype::kBf16,
                                         StreamDtype::kF32));

}  // namespace
}  // namespace engram::gpu_check

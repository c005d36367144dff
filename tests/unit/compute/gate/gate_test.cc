#include "compute/gate/gate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "compute/gate/gate_core.h"
#include "core/model/number_formats.h"
#include "gtest/gtest.h"
#include "tests/unit/compute/gate/cancelling_values.h"

namespace engram {
namespace {

// Random weights, streams and kv of one shape.
struct Case {
  Case(uint32_t hc, uint32_t dim, size_t tokens, float eps)
      : tokens(tokens), random(hc * 1000 + dim) {
    weights.hc_mult = hc;
    weights.dim = dim;
    weights.norm_eps = eps;
    for (size_t i = 0; i < size_t{hc} * dim; ++i) {
      weights.weight.push_back(1 + 0.25F * Normal());
    }
    for (size_t i = 0; i < tokens * hc * dim; ++i) {
      streams.push_back(RoundToBf16(Normal() * 3));
    }
    for (size_t i = 0; i < tokens * (hc + 1) * dim; ++i) {
      kv.push_back(FloatToBf16(Normal()));
    }
  }

  float Normal() { return std::normal_distribution<float>()(random); }

  std::vector<std::byte> Bytes(StreamDtype dtype) const {
    std::vector<std::byte> bytes(streams.size() * StreamBytes(dtype));
    for (size_t i = 0; i < streams.size(); ++i) {
      const uint16_t bf16 = FloatToBf16(streams[i]);
      if (dtype == StreamDtype::kBf16) {
        std::memcpy(&bytes[2 * i], &bf16, 2);
      } else {
        std::memcpy(&bytes[4 * i], &streams[i], 4);
      }
    }
    return bytes;
  }

  std::vector<float> Gate(StreamDtype dtype,
                          absl::Span<const uint8_t> mask = {}) const {
    std::vector<float> gate(tokens * weights.hc_mult, -7);
    ComputeGate(weights, dtype, Bytes(dtype), kv, mask, absl::MakeSpan(gate));
    return gate;
  }

  // Every operation in double precision.
  double WantedGate(size_t token, size_t stream) const {
    const size_t dim = weights.dim;
    const float* h = &streams[(token * weights.hc_mult + stream) * dim];
    const uint16_t* key =
        &kv[token * (weights.hc_mult + 1) * dim + stream * dim];
    double hh = 0;
    double kk = 0;
    double dot = 0;
    for (size_t i = 0; i < dim; ++i) {
      const double k = Bf16ToFloat(key[i]);
      hh += double{h[i]} * h[i];
      kk += k * k;
      dot += h[i] * double{weights.weight[stream * dim + i]} * k;
    }
    dot /= std::sqrt(hh / dim + weights.norm_eps) *
           std::sqrt(kk / dim + weights.norm_eps) * std::sqrt(double(dim));
    const double x =
        std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
    return 1 / (1 + std::exp(-x));
  }

  size_t tokens;
  std::mt19937 random;
  GateWeights weights;
  std::vector<float> streams;
  std::vector<uint16_t> kv;
};

float StreamAt(const std::vector<std::byte>& bytes, StreamDtype dtype,
               size_t i) {
  if (dtype == StreamDtype::kF32) {
    float value;
    std::memcpy(&value, &bytes[4 * i], 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, &bytes[2 * i], 2);
  return Bf16ToFloat(bits);
}

class GateTest : public testing::TestWithParam<StreamDtype> {};

INSTANTIATE_TEST_SUITE_P(Dtypes, GateTest,
                         testing::Values(StreamDtype::kBf16,
                                         StreamDtype::kF32));

TEST_P(GateTest, CloseToDoublePrecision) {
  // 5120 as in V4.1, and widths that do not fill the sums.
  for (const uint32_t dim : {1U, 31U, 255U, 257U, 300U, 5120U}) {
    const Case c(3, dim, 4, 1e-6F);
    const std::vector<float> gate = c.Gate(GetParam());
    for (size_t m = 0; m < 4; ++m) {
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_NEAR(gate[m * 3 + s], c.WantedGate(m, s), 1e-6)
            << dim << " " << m << " " << s;
      }
    }
  }
}

TEST_P(GateTest, ZeroStreamsAndKeysGiveNoNan) {
  Case c(2, 64, 3, 1e-20F);
  std::fill(c.streams.begin(), c.streams.begin() + 64, 0);  // token 0, stream 0
  std::fill(c.kv.begin() + 192, c.kv.begin() + 256, 0);     // token 1, key 0
  std::fill(c.streams.begin() + 256, c.streams.end(), 0);   // token 2
  std::fill(c.kv.begin() + 384, c.kv.end(), 0);
  const auto at_zero = static_cast<float>(1 / (1 + std::exp(-double{1e-3F})));
  const std::vector<float> gate = c.Gate(GetParam());
  EXPECT_NEAR(gate[0], at_zero, 1e-7);
  EXPECT_NEAR(gate[2], at_zero, 1e-7);
  EXPECT_NEAR(gate[4], at_zero, 1e-7);
  EXPECT_NEAR(gate[5], at_zero, 1e-7);
}

TEST_P(GateTest, TheSignOfTheDotDecides) {
  Case c(1, 32, 2, 1e-6F);
  for (size_t i = 0; i < 32; ++i) {
    c.weights.weight[i] = 1;
    c.streams[i] = 1;
    c.kv[i] = FloatToBf16(2);
    c.streams[32 + i] = 1;
    c.kv[64 + i] = FloatToBf16(-2);
  }
  // dot = +-dim^0.5
  const double x = std::pow(32, 0.25);
  const std::vector<float> gate = c.Gate(GetParam());
  EXPECT_NEAR(gate[0], 1 / (1 + std::exp(-x)), 1e-6);
  EXPECT_NEAR(gate[1], 1 / (1 + std::exp(x)), 1e-6);
}

TEST_P(GateTest, DeadTokensComeBackBitForBit) {
  Case c(2, 40, 3, 1e-6F);
  std::vector<std::byte> in = c.Bytes(GetParam());
  const size_t token_bytes = in.size() / 3;
  // Any bits: a signalling NaN must survive too.
  for (size_t i = 0; i < token_bytes; ++i) {
    in[token_bytes + i] = std::byte(i % 2 == 0 ? 0x01 : 0x7F);
  }
  const std::vector<uint8_t> mask = {1, 0, 1};
  std::vector<float> gate(6, -7);
  ComputeGate(c.weights, GetParam(), in, c.kv, mask, absl::MakeSpan(gate));
  EXPECT_EQ(BitsFromFloat(gate[2]), 0U);
  EXPECT_EQ(BitsFromFloat(gate[3]), 0U);
  EXPECT_GT(gate[1], 0);
  EXPECT_GT(gate[4], 0);
  std::vector<std::byte> out(in.size());
  AddContribution(c.weights, GetParam(), in, c.kv, gate, mask,
                  absl::MakeSpan(out));
  EXPECT_TRUE(std::equal(out.begin() + token_bytes,
                         out.begin() + 2 * token_bytes,
                         in.begin() + token_bytes));
  EXPECT_FALSE(std::equal(out.begin(), out.begin() + token_bytes, in.begin()));
}

// A caller that takes gate and value and adds them itself.
TEST_P(GateTest, TheProductRoundsBeforeTheSum) {
  const Case c(2, 4096, 2, 1e-6F);
  const std::vector<float> gate = c.Gate(GetParam());
  const std::vector<std::byte> in = c.Bytes(GetParam());
  std::vector<std::byte> out(in.size());
  AddContribution(c.weights, GetParam(), in, c.kv, gate, {},
                  absl::MakeSpan(out));
  size_t fused_differs = 0;
  for (size_t m = 0; m < 2; ++m) {
    for (size_t s = 0; s < 2; ++s) {
      for (size_t i = 0; i < 4096; ++i) {
        const size_t at = (m * 2 + s) * 4096 + i;
        const float h = StreamAt(in, GetParam(), at);
        const float value = Bf16ToFloat(c.kv[(m * 3 + 2) * 4096 + i]);
        const volatile float product = gate[m * 2 + s] * value;
        const float sum = h + product;
        const float got = StreamAt(out, GetParam(), at);
        ASSERT_EQ(got,
                  GetParam() == StreamDtype::kF32 ? sum : RoundToBf16(sum));
        if (std::fma(gate[m * 2 + s], value, h) != sum) ++fused_differs;
      }
    }
  }
  EXPECT_GT(fused_differs, 0U);
}

TEST_P(GateTest, StreamsMayBeUnalignedAndTheOutputItself) {
  const Case c(2, 33, 3, 1e-6F);
  const std::vector<float> gate = c.Gate(GetParam());
  const std::vector<std::byte> in = c.Bytes(GetParam());
  std::vector<std::byte> wanted(in.size());
  AddContribution(c.weights, GetParam(), in, c.kv, gate, {},
                  absl::MakeSpan(wanted));
  std::vector<std::byte> shifted(in.size() + 1);
  std::copy(in.begin(), in.end(), shifted.begin() + 1);
  const auto streams = absl::MakeSpan(shifted).subspan(1);
  std::vector<float> again(gate.size());
  ComputeGate(c.weights, GetParam(), streams, c.kv, {}, absl::MakeSpan(again));
  EXPECT_EQ(again, gate);
  AddContribution(c.weights, GetParam(), streams, c.kv, gate, {}, streams);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), streams.begin()));
}

// Partial sum j takes features j, j + 256, ... in order; then neighbours are
// added.
double SumInOrder(const std::vector<double>& terms) {
  double sums[256] = {};
  for (size_t i = 0; i < terms.size(); ++i) sums[i % 256] += terms[i];
  for (size_t distance = 1; distance < 256; distance *= 2) {
    for (size_t j = 0; j < 256; j += 2 * distance)
      sums[j] += sums[j + distance];
  }
  return sums[0];
}

TEST(GateCoreTest, SumsInTwoHundredFiftySixPartialSums) {
  std::mt19937_64 random(17);
  for (const uint32_t dim : {200U, 1000U, 5120U}) {
    Case c(8, dim, 1, 1e-6F);
    std::fill(c.weights.weight.begin(), c.weights.weight.end(), 1);
    std::fill(c.kv.begin(), c.kv.end(), FloatToBf16(1));
    std::vector<float> wanted;
    for (size_t s = 0; s < 8; ++s) {
      const std::vector<float> values = CancellingValues(dim, &random);
      std::copy(values.begin(), values.end(), c.streams.begin() + s * dim);
      std::vector<double> squares;
      for (const float v : values) squares.push_back(GateSquare(v));
      wanted.push_back(GateFromSums(
          {SumInOrder(squares), SumInOrder(std::vector<double>(dim, 1)),
           SumInOrder({values.begin(), values.end()})},
          dim, 1e-6F, InverseSqrtDim(dim)));
    }
    EXPECT_EQ(c.Gate(StreamDtype::kF32), wanted) << dim;
    EXPECT_EQ(c.Gate(StreamDtype::kBf16), wanted) << dim;
  }
}

// A subtree first, as a thread of `kWidth` features does.
template <uint32_t kWidth>
double InSubtrees(const std::vector<double>& sums) {
  std::vector<double> threads(256 / kWidth);
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = AddNeighbours<kWidth>(&sums[i * kWidth]);
  }
  return AddNeighbours<256 / kWidth>(threads.data());
}

TEST(GateCoreTest, AnyNumberOfSumsAThreadGivesTheSameBits) {
  std::mt19937 random(11);
  std::vector<double> sums(256);
  for (double& sum : sums) sum = std::normal_distribution<double>()(random);
  const double wanted = AddNeighbours<256>(sums.data());
  EXPECT_EQ(InSubtrees<1>(sums), wanted);
  EXPECT_EQ(InSubtrees<2>(sums), wanted);
  EXPECT_EQ(InSubtrees<4>(sums), wanted);
  EXPECT_EQ(InSubtrees<8>(sums), wanted);
  EXPECT_EQ(InSubtrees<32>(sums), wanted);
}

}  // namespace
}  // namespace engram

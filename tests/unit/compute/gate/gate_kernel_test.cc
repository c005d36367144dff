#include "compute/gate/gate_kernel.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "compute/gate/gate.h"
#include "compute/gate/gate_args.h"
#include "compute/gate/gate_shape.h"
#include "core/model/number_formats.h"
#include "gtest/gtest.h"
#include "tests/gpu/emulator/emulator.h"
#include "tests/unit/compute/gate/cancelling_values.h"

namespace engram {
namespace {

constexpr std::byte kPoison{0xA5};

// Memory of any alignment with poison before and behind.
template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t count, size_t shift = 0)
      : bytes_(kGuard * 2 + count * sizeof(T) + 16, kPoison), count_(count) {
    const auto start = reinterpret_cast<uintptr_t>(bytes_.data() + kGuard);
    at_ = kGuard + (16 - start % 16) % 16 + shift * sizeof(T);
  }

  T* data() { return reinterpret_cast<T*>(bytes_.data() + at_); }
  absl::Span<T> span() { return {data(), count_}; }
  std::vector<T> Values() {
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), data(), count_ * sizeof(T));
    return values;
  }
  bool GuardIsWhole() const {
    const auto is_poison = [](std::byte b) { return b == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + at_, is_poison) &&
           std::all_of(bytes_.begin() + at_ + count_ * sizeof(T), bytes_.end(),
                       is_poison);
  }

 private:
  static constexpr size_t kGuard = 64;
  std::vector<std::byte> bytes_;
  size_t count_;
  size_t at_;
};

struct Outputs {
  std::vector<std::byte> streams;
  std::vector<float> gate;
  std::vector<uint16_t> value;
};

struct Case {
  StreamDtype dtype = StreamDtype::kBf16;
  uint32_t tokens = 1;
  uint32_t hc = 1;
  uint32_t dim = 1;
  float eps = 1e-20F;
  std::vector<uint8_t> mask = {};  // empty: all live
  GateWeights weights = {};
  std::vector<std::byte> streams = {};
  std::vector<uint16_t> kv = {};  // a row for each token, dead ones too

  void Fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    weights = {.hc_mult = hc, .dim = dim, .norm_eps = eps, .weight = {}};
    for (size_t i = 0; i < size_t{hc} * dim; ++i) {
      weights.weight.push_back(1 + 0.25F * normal(random));
    }
    streams.resize(size_t{tokens} * hc * dim * StreamBytes(dtype));
    for (size_t i = 0; i < size_t{tokens} * hc * dim; ++i) {
      SetStream(i, normal(random) * 3);
    }
    for (size_t i = 0; i < size_t{tokens} * (hc + 1) * dim; ++i) {
      kv.push_back(FloatToBf16(normal(random)));
    }
  }
  void SetStream(size_t i, float value) {
    const uint16_t bf16 = FloatToBf16(value);
    if (dtype == StreamDtype::kBf16) {
      std::memcpy(&streams[2 * i], &bf16, 2);
    } else {
      std::memcpy(&streams[4 * i], &value, 4);
    }
  }
  bool IsLive(size_t token) const { return mask.empty() || mask[token] != 0; }

  Outputs OnCpu() const {
    Outputs out;
    out.gate.resize(size_t{tokens} * hc, -7);
    ComputeGate(weights, dtype, streams, kv, mask, absl::MakeSpan(out.gate));
    out.streams.resize(streams.size());
    AddContribution(weights, dtype, streams, kv, out.gate, mask,
                    absl::MakeSpan(out.streams));
    for (size_t m = 0; m < tokens; ++m) {
      const size_t value = (m * (hc + 1) + hc) * dim;
      for (size_t i = 0; i < dim; ++i) {
        out.value.push_back(IsLive(m) ? kv[value + i] : 0);
      }
    }
    return out;
  }
};

// How the emulated device is called.
struct Call {
  uint64_t seed = 1;
  bool wants_streams = true;
  bool wants_gate = true;
  bool wants_value = true;
  bool in_place = false;  // out_streams is streams
  size_t shift = 0;       // of everything, in elements
};

Outputs OnGpu(const Case& c, const Call& call, GateShape* used = nullptr) {
  const size_t features = size_t{c.tokens} * c.hc * c.dim;
  const size_t kv_width = size_t{c.hc + 1} * c.dim;
  // Rows of live tokens only, the last token's first.
  std::vector<int32_t> live_index(c.tokens, -1);
  std::vector<uint16_t> live_kv;
  for (size_t m = c.tokens; m-- > 0;) {
    if (!c.IsLive(m)) continue;
    live_index[m] = static_cast<int32_t>(live_kv.size() / kv_width);
    live_kv.insert(live_kv.end(), c.kv.begin() + m * kv_width,
                   c.kv.begin() + (m + 1) * kv_width);
  }
  Guarded<uint16_t> kv(c.mask.empty() ? c.kv.size() : live_kv.size(),
                       call.shift);
  std::copy_n(c.mask.empty() ? c.kv.data() : live_kv.data(), kv.span().size(),
              kv.data());
  Guarded<float> weight(c.weights.weight.size(), call.shift);
  std::copy(c.weights.weight.begin(), c.weights.weight.end(), weight.data());

  const size_t bytes = StreamBytes(c.dtype);
  Guarded<std::byte> streams(features * bytes, call.shift * bytes);
  std::copy(c.streams.begin(), c.streams.end(), streams.data());
  Guarded<std::byte> out_streams(
      call.wants_streams && !call.in_place ? features * bytes : 0,
      call.shift * bytes);
  Guarded<float> gate(call.wants_gate ? size_t{c.tokens} * c.hc : 0);
  Guarded<uint16_t> value(call.wants_value ? size_t{c.tokens} * c.dim : 0,
                          call.shift);

  GateArgs args = {.dtype = c.dtype,
                   .token_count = c.tokens,
                   .hc_mult = c.hc,
                   .dim = c.dim,
                   .norm_eps = c.eps,
                   .streams = streams.data(),
                   .kv = kv.data(),
                   .live_index = c.mask.empty() ? nullptr : live_index.data(),
                   .weight = weight.data()};
  if (call.wants_streams) {
    args.out_streams = call.in_place ? streams.data() : out_streams.data();
  }
  if (call.wants_gate) args.out_gate = gate.data();
  if (call.wants_value) args.out_value = value.data();
  const GateShape shape = MakeGateShape(args);
  VisitGateKernel(c.dtype, shape, [&](auto* kernel) {
    emulator::Launch(shape.launch, call.seed, kernel, args,
                     InverseSqrtDim(c.dim), shape.kept_bytes);
  });
  EXPECT_TRUE(streams.GuardIsWhole() && out_streams.GuardIsWhole() &&
              gate.GuardIsWhole() && value.GuardIsWhole());
  EXPECT_TRUE(call.in_place || streams.Values() == c.streams);
  if (used != nullptr) *used = shape;
  return {call.in_place ? streams.Values() : out_streams.Values(),
          gate.Values(), value.Values()};
}

float StreamAt(const Outputs& out, StreamDtype dtype, size_t i) {
  uint32_t f32 = 0;
  uint16_t bf16 = 0;
  if (dtype == StreamDtype::kF32) {
    std::memcpy(&f32, &out.streams[4 * i], 4);
    return FloatFromBits(f32);
  }
  std::memcpy(&bf16, &out.streams[2 * i], 2);
  return Bf16ToFloat(bf16);
}

// The same bits; a NaN is like any other, because a device has its own.
bool Same(float a, float b) {
  return BitsFromFloat(a) == BitsFromFloat(b) ||
         (std::isnan(a) && std::isnan(b));
}

void ExpectSame(const Case& c, const Outputs& got, const Outputs& wanted) {
  if (!got.gate.empty()) {
    ASSERT_EQ(got.gate.size(), wanted.gate.size());
    for (size_t i = 0; i < got.gate.size(); ++i) {
      ASSERT_TRUE(Same(got.gate[i], wanted.gate[i]))
          << "gate " << i << ": " << got.gate[i] << ", not " << wanted.gate[i];
    }
  }
  ASSERT_TRUE(got.value.empty() || got.value == wanted.value);
  if (got.streams.empty()) return;
  ASSERT_EQ(got.streams.size(), wanted.streams.size());
  for (size_t i = 0; i < got.streams.size() / StreamBytes(c.dtype); ++i) {
    const float a = StreamAt(got, c.dtype, i);
    const float b = StreamAt(wanted, c.dtype, i);
    ASSERT_TRUE(Same(a, b)) << "feature " << i << ": " << a << ", not " << b;
  }
}

class GateKernelTest : public testing::TestWithParam<StreamDtype> {};

INSTANTIATE_TEST_SUITE_P(Dtypes, GateKernelTest,
                         testing::Values(StreamDtype::kBf16,
                                         StreamDtype::kF32));

TEST_P(GateKernelTest, V41FewTokensAndMany) {
  for (const uint32_t tokens : {1U, 3U, 65U}) {
    Case c = {.dtype = GetParam(), .tokens = tokens, .hc = 4, .dim = 5120};
    c.Fill(tokens);
    GateShape shape;
    ExpectSame(c, OnGpu(c, {.seed = tokens}, &shape), c.OnCpu());
    EXPECT_TRUE(shape.is_whole);
    EXPECT_EQ(shape.width, tokens == 65 ? 4U : 2U);
  }
}

TEST_P(GateKernelTest, OddShapes) {
  for (const auto& [hc, dim] :
       std::vector<std::tuple<uint32_t, uint32_t>>{{1, 1},
                                                   {3, 31},
                                                   {2, 255},
                                                   {2, 257},
                                                   {5, 258},
                                                   {1, 2561},
                                                   {3, 260},
                                                   {2, 1024},
                                                   {7, 2560},
                                                   {1, 2564},
                                                   {2, 7168},
                                                   {1, 10240}}) {
    Case c = {.dtype = GetParam(), .tokens = 3, .hc = hc, .dim = dim};
    c.Fill(hc * 10000 + dim);
    SCOPED_TRACE(testing::Message() << hc << " streams of " << dim);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      ExpectSame(c, OnGpu(c, {.seed = seed}), c.OnCpu());
    }
  }
}

TEST_P(GateKernelTest, OrderOfSumsIsThatOfTheCpu) {
  std::mt19937_64 random(13);
  for (const auto& [tokens, dim] : std::vector<std::tuple<uint32_t, uint32_t>>{
           {10, 301}, {10, 2564}, {10, 5120}, {65, 5120}, {65, 516}}) {
    Case c = {.dtype = GetParam(), .tokens = tokens, .hc = 2, .dim = dim};
    c.Fill(1);
    std::fill(c.kv.begin(), c.kv.end(), FloatToBf16(1));
    std::fill(c.weights.weight.begin(), c.weights.weight.end(), 1);
    for (size_t row = 0; row < size_t{tokens} * 2; ++row) {
      const std::vector<float> values = CancellingValues(dim, &random);
      for (size_t i = 0; i < dim; ++i) c.SetStream(row * dim + i, values[i]);
    }
    SCOPED_TRACE(testing::Message() << tokens << " tokens of " << dim);
    ExpectSame(c, OnGpu(c, {}), c.OnCpu());
  }
}

TEST_P(GateKernelTest, ManyTokensOfOddShapes) {
  for (const auto& [hc, dim] : std::vector<std::tuple<uint32_t, uint32_t>>{
           {1, 33}, {2, 36}, {3, 44}, {4, 260}, {2, 10240}}) {
    Case c = {.dtype = GetParam(), .tokens = 66, .hc = hc, .dim = dim};
    c.mask.assign(c.tokens, 1);
    for (size_t m = 0; m < c.tokens; m += 5) c.mask[m] = 0;
    c.Fill(hc * 10000 + dim);
    SCOPED_TRACE(testing::Message() << hc << " streams of " << dim);
    ExpectSame(c, OnGpu(c, {}), c.OnCpu());
  }
}

TEST_P(GateKernelTest, StreamsTooLongForABlockOfTwo) {
  Case c = {.dtype = GetParam(), .tokens = 65, .hc = 2, .dim = 15360};
  c.Fill(1);
  GateShape shape;
  ExpectSame(c, OnGpu(c, {}, &shape), c.OnCpu());
  EXPECT_EQ(shape.launch.block_x, 64U);
}

TEST_P(GateKernelTest, UnalignedPointersReadFeatureByFeature) {
  Case c = {.dtype = GetParam(), .tokens = 3, .hc = 2, .dim = 5120};
  c.Fill(4);
  GateShape shape;
  ExpectSame(c, OnGpu(c, {.shift = 1}, &shape), c.OnCpu());
  EXPECT_EQ(shape.width, 1U);
  ExpectSame(c, OnGpu(c, {.shift = 4}, &shape), c.OnCpu());
  EXPECT_EQ(shape.width, 2U);
}

TEST_P(GateKernelTest, DeadTokensComeBackBitForBit) {
  for (const uint32_t dim : {40U, 41U, 5120U}) {
    Case c = {.dtype = GetParam(), .tokens = 5, .hc = 2, .dim = dim};
    c.mask = {0, 1, 0, 0, 1};
    c.Fill(dim);
    // Any bits: a signalling NaN must survive too.
    const size_t token_bytes = c.streams.size() / c.tokens;
    for (size_t i = 0; i < token_bytes; ++i) {
      c.streams[2 * token_bytes + i] = std::byte(i % 2 == 0 ? 0x01 : 0x7F);
    }
    for (const bool in_place : {false, true}) {
      const Outputs got = OnGpu(c, {.in_place = in_place});
      ExpectSame(c, got, c.OnCpu());
      EXPECT_TRUE(std::equal(got.streams.begin() + 2 * token_bytes,
                             got.streams.begin() + 4 * token_bytes,
                             c.streams.begin() + 2 * token_bytes));
      for (const size_t i : {0, 1, 4, 5, 6, 7}) {
        EXPECT_EQ(BitsFromFloat(got.gate[i]), 0U);
      }
      EXPECT_GT(got.gate[2], 0);
    }
  }
}

TEST_P(GateKernelTest, AllTokensDead) {
  Case c = {.dtype = GetParam(), .tokens = 2, .hc = 4, .dim = 5120};
  c.mask = {0, 0};
  c.Fill(8);
  ExpectSame(c, OnGpu(c, {}), c.OnCpu());
}

TEST_P(GateKernelTest, OutputMayBeTheStreams) {
  for (const uint32_t tokens : {3U, 65U}) {
    for (const uint32_t dim : {77U, 5120U}) {
      Case c = {.dtype = GetParam(), .tokens = tokens, .hc = 2, .dim = dim};
      c.Fill(dim);
      for (uint64_t seed = 0; seed < 2; ++seed) {
        ExpectSame(c, OnGpu(c, {.seed = seed, .in_place = true}), c.OnCpu());
      }
    }
  }
}

TEST_P(GateKernelTest, AnyOutputsMayBeLeftOut) {
  for (const uint32_t dim : {48U, 49U}) {
    Case c = {.dtype = GetParam(), .tokens = 4, .hc = 3, .dim = dim};
    c.mask = {1, 0, 1, 1};
    c.Fill(9);
    const Outputs wanted = c.OnCpu();
    for (uint32_t bits = 0; bits < 8; ++bits) {
      const Call call = {.wants_streams = (bits & 1) != 0,
                         .wants_gate = (bits & 2) != 0,
                         .wants_value = (bits & 4) != 0};
      ExpectSame(c, OnGpu(c, call), wanted);
    }
  }
}

TEST_P(GateKernelTest, ZerosAreNoNan) {
  for (const uint32_t dim : {64U, 5120U}) {
    Case c = {.dtype = GetParam(), .tokens = 2, .hc = 2, .dim = dim};
    c.Fill(10);
    for (size_t i = 0; i < dim; ++i) c.SetStream(i, 0);
    std::fill_n(c.kv.begin() + 3 * dim, dim, 0);       // token 1, key 0
    std::fill_n(c.kv.begin() + 4 * dim, dim, 0x8000);  // token 1, key 1: -0
    const Outputs got = OnGpu(c, {});
    ExpectSame(c, got, c.OnCpu());
    for (const float gate : got.gate) EXPECT_FALSE(std::isnan(gate));
  }
}

TEST_P(GateKernelTest, NanStaysWithItsToken) {
  const float nan = FloatFromBits(0x7FC00000);
  const float infinity = FloatFromBits(0x7F800000);
  for (const uint32_t dim : {96U, 5120U}) {
    Case clean = {.dtype = GetParam(), .tokens = 6, .hc = 2, .dim = dim};
    clean.Fill(11);
    Case c = clean;
    c.SetStream((1 * 2 + 1) * dim + 5, nan);
    c.kv[(2 * 3 + 0) * dim + 7] = FloatToBf16(nan);  // token 2, key 0
    c.kv[(3 * 3 + 2) * dim + 9] = FloatToBf16(nan);  // token 3, value
    c.SetStream((4 * 2 + 0) * dim + 3, infinity);
    const Outputs wanted = clean.OnCpu();
    const Outputs got = OnGpu(c, {});
    ExpectSame(c, got, c.OnCpu());
    EXPECT_TRUE(std::isnan(got.gate[3]));
    EXPECT_TRUE(std::isnan(got.gate[4]));
    for (const size_t i : {0, 1, 2, 5, 6, 7, 9, 10, 11}) {
      EXPECT_TRUE(Same(got.gate[i], wanted.gate[i])) << i;
    }
    for (const size_t token : {0, 5}) {
      for (size_t i = 0; i < 2 * dim; ++i) {
        const size_t at = token * 2 * dim + i;
        ASSERT_TRUE(
            Same(StreamAt(got, c.dtype, at), StreamAt(wanted, c.dtype, at)))
            << at;
      }
    }
  }
}

// The largest and smallest numbers: squares must neither overflow nor vanish.
TEST_P(GateKernelTest, ExtremeMagnitudes) {
  Case c = {.dtype = GetParam(), .tokens = 3, .hc = 1, .dim = 64};
  c.Fill(12);
  for (size_t i = 0; i < 64; ++i) {
    c.SetStream(i, FloatFromBits(0x7F7F0000));
    c.SetStream(64 + i, FloatFromBits(0x00010000));  // subnormal
    c.SetStream(128 + i, i % 2 == 0 ? 1e-30F : -1e-30F);
  }
  ExpectSame(c, OnGpu(c, {}), c.OnCpu());
}

}  // namespace
}  // namespace engram

#include "compute/dequant/decode_kernel.cuh"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "compute/dequant/decode_args.h"
#include "compute/dequant/decode_shape.h"
#include "compute/dequant/dequant.h"
#include "compute/project/fragment_layout.h"
#include "core/model/number_formats.h"
#include "core/model/row_format.h"
#include "gtest/gtest.h"
#include "tests/gpu/emulator/emulator.h"

namespace engram {
namespace {

constexpr uint16_t kPoison = 0xA5A5;
constexpr size_t kGuard = 64;  // poisoned values before and behind

struct Case {
  RowFormat format;
  uint32_t tokens = 1;
  uint32_t columns = 1;
  std::vector<std::byte> rows = {};

  uint32_t in() const { return columns * format.width; }
};

RowFormat Format(uint32_t width, uint32_t block_size) {
  return *RowFormat::Create("F8_E4M3", "F8_E8M0", width, block_size);
}

// What the CPU's projection would multiply, [tokens, in].
std::vector<float> OnCpu(const Case& c) {
  std::vector<float> values(size_t{c.tokens} * c.in());
  DecodeRowsForProjection(c.format, c.rows, absl::MakeSpan(values));
  return values;
}

// Copies `count` things to where their address is `shift` of them past a
// multiple of 16.
template <typename T>
T* Place(std::vector<std::byte>* memory, const T* from, size_t count,
         size_t shift) {
  memory->resize((count + shift) * sizeof(T) + 16);
  const auto start = reinterpret_cast<uintptr_t>(memory->data());
  T* const to = reinterpret_cast<T*>(memory->data() + (16 - start % 16) % 16 +
                                     shift * sizeof(T));
  std::memcpy(to, from, count * sizeof(T));
  return to;
}

struct Call {
  DecodedLayout layout = DecodedLayout::kRowMajor;
  uint64_t seed = 1;
  size_t row_shift = 0;  // in bytes
  size_t out_shift = 0;  // in values
};

// The values at their places in the layout; checks that nothing is written
// past them. `kind`: of the kernel that ran.
std::vector<uint16_t> OnGpu(const Case& c, const Call& call,
                            DecodeKind* kind = nullptr) {
  const size_t count = call.layout == DecodedLayout::kFragments
                           ? FragmentCount(c.tokens, c.in())
                           : size_t{c.tokens} * c.in();
  std::vector<std::byte> row_memory;
  std::vector<std::byte> out_memory;
  const std::vector<uint16_t> poison(count + 2 * kGuard, kPoison);
  uint16_t* const out =
      Place(&out_memory, poison.data(), poison.size(), call.out_shift);
  DecodeArgs args = {
      .token_count = c.tokens,
      .columns = c.columns,
      .width = c.format.width,
      .block_size = c.format.block_size,
      .rows = Place(&row_memory, c.rows.data(), c.rows.size(), call.row_shift),
      .layout = call.layout,
      .out = out + kGuard};
  const DecodeShape shape = MakeDecodeShape(args);
  if (kind != nullptr) *kind = shape.kind;
  VisitDecodeKernel(args, shape, [&](auto* kernel) {
    emulator::Launch(shape.launch, call.seed, kernel, args);
  });
  for (size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(out[i], kPoison);
    EXPECT_EQ(out[kGuard + count + i], kPoison);
  }
  return {out + kGuard, out + kGuard + count};
}

// The bits that the CPU would round to; a NaN is like any other.
bool Same(uint16_t got, float wanted) {
  if (std::isnan(wanted)) return std::isnan(Bf16ToFloat(got));
  return got == FloatToBf16(wanted) && Bf16ToFloat(got) == wanted;
}

void ExpectAsOnCpu(const Case& c, const Call& call, DecodeKind wanted_kind) {
  const std::vector<float> wanted = OnCpu(c);
  DecodeKind kind;
  const std::vector<uint16_t> got = OnGpu(c, call, &kind);
  ASSERT_EQ(kind, wanted_kind);
  const uint32_t in = c.in();
  if (call.layout == DecodedLayout::kRowMajor) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(Same(got[i], wanted[i]))
          << "token " << i / in << " value " << i % in << ": "
          << Bf16ToFloat(got[i]) << ", not " << wanted[i];
    }
    return;
  }
  for (size_t token = 0; token < RoundUpTo(c.tokens, kFragmentTokens);
       ++token) {
    for (size_t k = 0; k < in; ++k) {
      const uint16_t value = got[FragmentIndex(token, k, in)];
      if (token >= c.tokens) {
        ASSERT_EQ(value, 0) << "token " << token << " value " << k;
        continue;
      }
      ASSERT_TRUE(Same(value, wanted[token * in + k]))
          << "token " << token << " value " << k << ": " << Bf16ToFloat(value)
          << ", not " << wanted[token * in + k];
    }
  }
}

// Every code at every scale, in one block or another.
Case AllCodesAndScales(const RowFormat& format) {
  Case c = {.format = format, .tokens = 11, .columns = 24};
  for (size_t row = 0; row < 264; ++row) {
    for (size_t i = 0; i < format.width; ++i) {
      c.rows.push_back(std::byte(i));
    }
    for (size_t b = 0; b < format.scale_bytes(); ++b) {
      c.rows.push_back(std::byte(row + b * 37));
    }
  }
  return c;
}

Case Random(const RowFormat& format, uint32_t tokens, uint32_t columns,
            uint32_t first_scale, uint32_t scale_count) {
  Case c = {.format = format, .tokens = tokens, .columns = columns};
  std::mt19937 random(format.width * 1000 + format.block_size + tokens);
  for (size_t row = 0; row < size_t{tokens} * columns; ++row) {
    for (size_t i = 0; i < format.width; ++i) {
      c.rows.push_back(std::byte(random()));
    }
    for (size_t b = 0; b < format.scale_bytes(); ++b) {
      c.rows.push_back(std::byte(first_scale + random() % scale_count));
    }
  }
  return c;
}

class DecodeKernelTest : public testing::TestWithParam<DecodedLayout> {};

INSTANTIATE_TEST_SUITE_P(Layouts, DecodeKernelTest,
                         testing::Values(DecodedLayout::kRowMajor,
                                         DecodedLayout::kFragments));

TEST_P(DecodeKernelTest, EveryCodeAtEveryScale) {
  const Case c = AllCodesAndScales(Format(256, 32));
  ExpectAsOnCpu(c, {.layout = GetParam()}, DecodeKind::kWide);
  ExpectAsOnCpu(c, {.layout = GetParam(), .row_shift = 4}, DecodeKind::kAny);
}

// Not all of these differ from the stored values, as the CPU's tests show.
TEST_P(DecodeKernelTest, SmallScaleBlocksAreQuantisedTogether) {
  for (const uint32_t block_size : {16U, 8U, 4U, 1U}) {
    ExpectAsOnCpu(AllCodesAndScales(Format(256, block_size)),
                  {.layout = GetParam()}, DecodeKind::kAny);
  }
}

TEST_P(DecodeKernelTest, NumbersOfTokens) {
  for (const uint32_t tokens : {1U, 2U, 7U, 8U, 9U, 31U}) {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      ExpectAsOnCpu(Random(Format(256, 32), tokens, 24, 95, 40),
                    {.layout = GetParam(), .seed = seed}, DecodeKind::kWide);
      ExpectAsOnCpu(Random(Format(48, 16), tokens, 2, 95, 40),
                    {.layout = GetParam(), .seed = seed}, DecodeKind::kAny);
    }
  }
}

TEST_P(DecodeKernelTest, WideFormats) {
  for (const auto& [width, block_size, columns] :
       std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>{{256, 32, 1},
                                                             {512, 64, 3},
                                                             {768, 32, 5},
                                                             {1024, 128, 2},
                                                             {2048, 256, 1},
                                                             {4096, 512, 1}}) {
    ExpectAsOnCpu(Random(Format(width, block_size), 9, columns, 0, 256),
                  {.layout = GetParam()}, DecodeKind::kWide);
    ExpectAsOnCpu(Random(Format(width, block_size), 10, columns, 100, 50),
                  {.layout = GetParam()}, DecodeKind::kWide);
  }
}

TEST_P(DecodeKernelTest, OddFormats) {
  for (const auto& [width, block_size, columns] :
       std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>{{32, 32, 1},
                                                             {64, 32, 5},
                                                             {96, 96, 3},
                                                             {96, 32, 1},
                                                             {288, 32, 1},
                                                             {64, 16, 3},
                                                             {48, 16, 6},
                                                             {40, 8, 4},
                                                             {24, 24, 4},
                                                             {20, 5, 8},
                                                             {8, 8, 4},
                                                             {1, 1, 32},
                                                             {33, 11, 32}}) {
    SCOPED_TRACE(testing::Message() << width << " by " << block_size);
    ExpectAsOnCpu(Random(Format(width, block_size), 5, columns, 0, 256),
                  {.layout = GetParam()}, DecodeKind::kAny);
    ExpectAsOnCpu(Random(Format(width, block_size), 9, columns, 95, 30),
                  {.layout = GetParam()}, DecodeKind::kAny);
  }
}

TEST_P(DecodeKernelTest, UnalignedMemory) {
  const Case c = Random(Format(256, 32), 9, 3, 95, 40);
  const DecodedLayout layout = GetParam();
  ExpectAsOnCpu(c, {.layout = layout, .row_shift = 8}, DecodeKind::kWide);
  ExpectAsOnCpu(c, {.layout = layout, .row_shift = 1}, DecodeKind::kAny);
  ExpectAsOnCpu(c, {.layout = layout, .out_shift = 1}, DecodeKind::kAny);
  ExpectAsOnCpu(c, {.layout = layout, .out_shift = 8}, DecodeKind::kWide);
}

}  // namespace
}  // namespace engram

#include "compute/dequant/dequant.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compute/dequant/decode_core.h"
#include "core/model/number_formats.h"
#include "core/model/row_format.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

// The formats written down in double precision, from their definitions.
double CodeValue(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -9)
                               : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Nearest e4m3 value, ties to even, by the distance to every code.
double NearestE4m3(double value) {
  double best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  bool best_even = true;
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;
    const double distance = std::fabs(CodeValue(code) - value);
    const bool even = code % 2 == 0;
    if (distance < best_distance ||
        (distance == best_distance && even && !best_even)) {
      best = CodeValue(code);
      best_distance = distance;
      best_even = even;
    }
  }
  return best;
}

RowFormat Format(uint32_t width, uint32_t block_size) {
  return *RowFormat::Create("F8_E4M3", "F8_E8M0", width, block_size);
}

std::vector<std::byte> Row(const std::vector<uint8_t>& codes,
                           const std::vector<uint8_t>& scales) {
  std::vector<std::byte> row(codes.size() + scales.size());
  std::memcpy(row.data(), codes.data(), codes.size());
  std::memcpy(row.data() + codes.size(), scales.data(), scales.size());
  return row;
}

std::vector<float> ForProjection(const RowFormat& format,
                                 const std::vector<std::byte>& packed) {
  std::vector<float> out(packed.size() / format.row_bytes() * format.width,
                         -12345);
  DecodeRowsForProjection(format, packed, absl::MakeSpan(out));
  return out;
}

std::vector<uint16_t> Bf16(const RowFormat& format,
                           const std::vector<std::byte>& packed) {
  std::vector<uint16_t> out(packed.size() / format.row_bytes() * format.width,
                            0xDEAD);
  DecodeRowsBf16(format, packed, absl::MakeSpan(out));
  return out;
}

// A block that holds `code` and zeros.
std::vector<uint8_t> LoneCode(uint8_t code) {
  std::vector<uint8_t> codes(32, 0);
  codes[17] = code;
  return codes;
}

TEST(DequantTest, EveryCodeAtEveryScale) {
  const RowFormat format = Format(32, 32);
  for (int scale = 3; scale <= 246; ++scale) {
    for (int code = 0; code < 256; ++code) {
      if ((code & 0x7F) == 0x7F) continue;
      const auto row = Row(LoneCode(code), {static_cast<uint8_t>(scale)});
      const double stored = std::ldexp(CodeValue(code), scale - 127);
      ASSERT_EQ(Bf16ToFloat(Bf16(format, row)[17]), stored)
          << code << " " << scale;
      const double wanted = std::fabs(stored) < double{1e-4F}
                                ? NearestE4m3(stored * 0x1p22) * 0x1p-22
                                : stored;
      const float got = ForProjection(format, row)[17];
      ASSERT_EQ(got, wanted) << code << " " << scale;
      ASSERT_EQ(std::signbit(got), (code & 0x80) != 0) << code << " " << scale;
    }
  }
}

// The claim behind decoding without quantisation: for any largest code and
// any other code of its block, the reference's rule gives the value back.
TEST(DequantTest, QuantisationGivesStoredValuesBackFromTheFloorOn) {
  for (int scale = 3; scale <= 246; ++scale) {
    const float factor = E8m0ToFloat(scale);
    for (int max_code = 1; max_code < 0x7F; ++max_code) {
      const float amax = DecodeValue(max_code, factor);
      if (amax < kAmaxFloor) continue;
      const float quant = QuantScale(amax);
      for (int code = 0; code <= max_code; ++code) {
        const float value = DecodeValue(code, factor);
        ASSERT_EQ(Requantise(value, quant), value)
            << max_code << " " << code << " " << scale;
      }
    }
  }
}

TEST(DequantTest, ScaleBelowTheFloorIsTheTinyScale) {
  EXPECT_EQ(QuantScale(0), kTinyScale);
  EXPECT_EQ(QuantScale(std::nextafterf(kAmaxFloor, 0)), kTinyScale);
  EXPECT_EQ(QuantScale(448), 1);
  EXPECT_EQ(QuantScale(449), 2);
}

// Blocks as the reference quantises them, around the floor and below it.
TEST(DequantTest, BlocksBelowTheFloorAreRoundedAtTheTinyScale) {
  std::mt19937 random(3);
  const RowFormat format = Format(32, 32);
  for (int scale = 0; scale < 120; ++scale) {
    for (uint32_t largest = 2; largest < 0x7F; largest += 5) {
      std::vector<uint8_t> codes(32);
      for (uint8_t& code : codes) {
        code = static_cast<uint8_t>((random() % largest) | (random() & 0x80));
      }
      const auto row = Row(codes, {static_cast<uint8_t>(scale)});
      const std::vector<uint16_t> stored = Bf16(format, row);
      float amax = 0;
      for (const uint16_t bits : stored) {
        amax = std::max(amax, std::fabs(Bf16ToFloat(bits)));
      }
      const double quant = QuantScale(amax);
      const std::vector<float> values = ForProjection(format, row);
      for (size_t i = 0; i < 32; i += 5) {
        ASSERT_EQ(values[i],
                  NearestE4m3(Bf16ToFloat(stored[i]) / quant) * quant)
            << int{codes[i]} << " " << scale;
      }
    }
  }
  // 4.5 steps of 2^-31: a tie, to even.
  EXPECT_EQ(ForProjection(format, Row(LoneCode(0x39), {98}))[17], 0x1p-29F);
}

TEST(DequantTest, NanStaysNan) {
  const RowFormat format = Format(32, 32);
  std::vector<uint8_t> codes = LoneCode(0x7F);
  codes[3] = 0x39;
  const auto tiny = ForProjection(format, Row(codes, {90}));
  EXPECT_TRUE(std::isnan(tiny[17]));
  EXPECT_EQ(tiny[3], 0);
  const auto values = ForProjection(format, Row(codes, {127}));
  EXPECT_TRUE(std::isnan(values[17]));
  EXPECT_EQ(values[3], 1.125F);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(Bf16(format, Row(codes, {90}))[17])));
  const auto nan_scale = ForProjection(format, Row(LoneCode(1), {255}));
  EXPECT_TRUE(std::isnan(nan_scale[17]));
}

// Scale blocks of 32 and of 64 with equal halves must agree with the general
// rule, which formats with smaller blocks go through.
TEST(DequantTest, BlockSizesAgree) {
  std::mt19937 random(5);
  std::vector<std::byte> by16;
  std::vector<std::byte> by32;
  std::vector<std::byte> by64;
  for (int r = 0; r < 500; ++r) {
    std::vector<uint8_t> codes(64);
    for (uint8_t& code : codes) {
      code = static_cast<uint8_t>(random());
      if ((code & 0x7F) == 0x7F) code ^= 8;
    }
    const auto scale = static_cast<uint8_t>(90 + random() % 30);
    for (const std::byte b : Row(codes, {scale, scale, scale, scale})) {
      by16.push_back(b);
    }
    for (const std::byte b : Row(codes, {scale, scale})) by32.push_back(b);
    for (const std::byte b : Row(codes, {scale})) by64.push_back(b);
  }
  const auto wanted = ForProjection(Format(64, 32), by32);
  EXPECT_EQ(ForProjection(Format(64, 16), by16), wanted);
  EXPECT_EQ(ForProjection(Format(64, 64), by64), wanted);
  EXPECT_EQ(Bf16(Format(64, 16), by16), Bf16(Format(64, 32), by32));
}

// With two scales in one block of the quantisation, small values round to the
// step of the large one.
TEST(DequantTest, SmallScaleBlocksShareOneQuantisation) {
  std::vector<uint8_t> codes(32, 0);
  codes[0] = 0x7E;   // 448
  codes[16] = 0x39;  // 1.125 * 2^-8, not a multiple of 2^-9
  const auto values = ForProjection(Format(32, 16), Row(codes, {127, 119}));
  EXPECT_EQ(values[0], 448);
  EXPECT_EQ(values[16], 0x1p-8F);
}

// A NaN does not change how the others of its block are quantised.
TEST(DequantTest, NanIsPassedOverInSmallScaleBlocks) {
  std::vector<uint8_t> codes(32, 0);
  codes[0] = 0x7E;   // 448
  codes[8] = 0x7F;   // NaN
  codes[16] = 0x39;  // 1.125 * 2^-8, not a multiple of 2^-9
  const auto values = ForProjection(Format(32, 16), Row(codes, {127, 119}));
  EXPECT_EQ(values[0], 448);
  EXPECT_TRUE(std::isnan(values[8]));
  EXPECT_EQ(values[16], 0x1p-8F);
}

}  // namespace
}  // namespace engram

#include "core/model/number_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace engram {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of an e4m3 code by its definition.
double SlowE4m3(int code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -9)
                               : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Nearest e4m3 magnitude by search over all of them; of two as near, the one
// of the even code.
double SlowRoundToE4m3(double value) {
  const double magnitude = std::min(std::fabs(value), 448.0);
  int best = 0;
  for (int code = 1; code < 0x7F; ++code) {
    const double distance = std::fabs(SlowE4m3(code) - magnitude);
    const double best_distance = std::fabs(SlowE4m3(best) - magnitude);
    if (distance < best_distance ||
        (distance == best_distance && code % 2 == 0)) {
      best = code;
    }
  }
  return std::copysign(SlowE4m3(best), value);
}

void ExpectSameBits(float actual, float wanted, uint32_t input) {
  EXPECT_EQ(BitsFromFloat(actual), BitsFromFloat(wanted))
      << "input bits " << std::hex << input << ": " << actual << " for "
      << wanted;
}

TEST(NumberFormatsTest, E4m3OfEveryCode) {
  for (int code = 0; code < 256; ++code) {
    const float value = E4m3ToFloat(static_cast<uint8_t>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(value)) << code;
      continue;
    }
    ExpectSameBits(value, static_cast<float>(SlowE4m3(code)),
                   static_cast<uint32_t>(code));
  }
  EXPECT_EQ(E4m3ToFloat(0x7E), 448.0F);
  EXPECT_EQ(E4m3ToFloat(0x01), 0.001953125F);
}

TEST(NumberFormatsTest, E8m0OfEveryCode) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(E8m0ToFloat(static_cast<uint8_t>(code)),
              std::ldexp(1.0, code - 127))
        << code;
  }
  EXPECT_TRUE(std::isnan(E8m0ToFloat(255)));
}

TEST(NumberFormatsTest, EveryBf16SurvivesTheWayThere) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(RoundToBf16(value))) << bits;
      EXPECT_EQ(FloatToBf16(value) & 0x8000U, bits & 0x8000U);
    } else {
      EXPECT_EQ(FloatToBf16(value), bits);
    }
  }
}

TEST(NumberFormatsTest, Bf16RoundsToNearestAndTiesToEven) {
  // For every bf16 below the largest: the values around its upper midpoint.
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const uint32_t midpoint = sign | (bits << 16) | 0x8000;
      const uint32_t below = (sign >> 16) | bits;
      const uint32_t even = below + (bits & 1);
      EXPECT_EQ(FloatToBf16(FloatFromBits(midpoint - 1)), below);
      EXPECT_EQ(FloatToBf16(FloatFromBits(midpoint)), even);
      EXPECT_EQ(FloatToBf16(FloatFromBits(midpoint + 1)), below + 1);
    }
  }
}

TEST(NumberFormatsTest, Bf16AtTheEnds) {
  EXPECT_EQ(FloatToBf16(0.0F), 0x0000);
  EXPECT_EQ(FloatToBf16(-0.0F), 0x8000);
  EXPECT_EQ(FloatToBf16(kInfinity), 0x7F80);
  EXPECT_EQ(FloatToBf16(-kInfinity), 0xFF80);
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(FloatToBf16(FloatFromBits(0x7F7F7FFF)), 0x7F7F);
  EXPECT_EQ(FloatToBf16(FloatFromBits(0x00000001)), 0x0000);
  EXPECT_EQ(FloatToBf16(FloatFromBits(0x00008001)), 0x0001);
  // A NaN whose upper half alone would be infinity stays NaN.
  EXPECT_EQ(FloatToBf16(FloatFromBits(0x7F800001)), 0x7FC0);
  EXPECT_EQ(FloatToBf16(FloatFromBits(0xFF800001)), 0xFFC0);
}

TEST(NumberFormatsTest, RoundToE4m3OfEveryBf16) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ExpectSameBits(RoundToE4m3(value),
                   static_cast<float>(SlowRoundToE4m3(value)), bits);
  }
}

TEST(NumberFormatsTest, RoundToE4m3AroundEveryMidpoint) {
  for (int code = 0; code < 0x7E; ++code) {
    const auto midpoint =
        static_cast<float>((SlowE4m3(code) + SlowE4m3(code + 1)) / 2);
    for (const float value : {std::nextafter(midpoint, 0.0F), midpoint,
                              std::nextafter(midpoint, 1000.0F)}) {
      for (const float signed_value : {value, -value}) {
        ExpectSameBits(RoundToE4m3(signed_value),
                       static_cast<float>(SlowRoundToE4m3(signed_value)),
                       BitsFromFloat(signed_value));
      }
    }
  }
}

TEST(NumberFormatsTest, RoundToE4m3ClampsAndKeepsCodes) {
  EXPECT_EQ(RoundToE4m3(kInfinity), 448.0F);
  EXPECT_EQ(RoundToE4m3(-1e30F), -448.0F);
  EXPECT_EQ(RoundToE4m3(464.5F), 448.0F);
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;
    const float value = E4m3ToFloat(static_cast<uint8_t>(code));
    ExpectSameBits(RoundToE4m3(value), value, static_cast<uint32_t>(code));
  }
}

}  // namespace
}  // namespace engram

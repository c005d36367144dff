#ifndef ENGRAM_COMPUTE_DEQUANT_DECODE_CORE_H_
#define ENGRAM_COMPUTE_DEQUANT_DECODE_CORE_H_

#include <cstdint>

#include "core/model/number_formats.h"

// Decoding of row values, for the CPU and, compiled by nvcc, for the GPU.

namespace engram {

// Values that share one scale when the projection's input is quantised.
inline constexpr uint32_t kQuantBlock = 32;

// The reference's floor of a block's largest magnitude.
inline constexpr float kAmaxFloor = 1e-4F;
// Scale that a block below the floor is quantised with: QuantScale(0).
inline constexpr float kTinyScale = 0x1p-22F;
inline constexpr float kTinyScaleInverse = 0x1p22F;

// code * 2^(scale - 127) before the rounding to bf16; exact in float32.
ENGRAM_HOST_DEVICE inline float DecodeValue(uint8_t code, float scale) {
  return E4m3ToFloat(code) * scale;
}

// Power-of-two scale that the reference quantises a block with:
// 2^ceil(log2(amax / 448)), computed on the bits of
// fl32(max(amax, 1e-4) * fl32(1 / 448)).
ENGRAM_HOST_DEVICE inline float QuantScale(float amax) {
  const float floored = amax < kAmaxFloor ? kAmaxFloor : amax;
  const uint32_t bits = BitsFromFloat(floored * (1.0F / 448.0F));
  const uint32_t exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
  return FloatFromBits(exponent << 23);
}

// What the reference's product sees of a bf16 value quantised at `scale`. NaN
// stays NaN; the largest magnitude of its block is that of the others.
ENGRAM_HOST_DEVICE inline float Requantise(float value, float scale) {
  if (value != value) return value;
  return RoundToE4m3(value / scale) * scale;
}

// What the projection multiplies for a value of a stored block, given only the
// block's own scale. Quantising gives the stored values back whenever
//   amax >= 1e-4: the new scale is at most the stored one (proved by a test
//     over all codes and scales), or
//   scale >= 2^-22: a value below the floor is then a multiple of 2^-31 with 4
//     significant bits, which e4m3 holds at 2^-22.
// Every other block has amax <= 448 * 2^-23 < 1e-4 and is rounded to e4m3 at
// 2^-22; the products by powers of two are exact. NaN stays NaN.
ENGRAM_HOST_DEVICE inline bool IsTinyScale(float scale) {
  return scale < kTinyScale;
}

ENGRAM_HOST_DEVICE inline float RequantiseTiny(float value) {
  if (value != value) return value;
  return RoundToE4m3(RoundToBf16(value) * kTinyScaleInverse) * kTinyScale;
}

// The two together, for a value of a stored block. bf16 holds it exactly.
ENGRAM_HOST_DEVICE inline float DecodeForProjection(uint8_t code, float scale) {
  const float value = DecodeValue(code, scale);
  return IsTinyScale(scale) ? RequantiseTiny(value) : value;
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DECODE_CORE_H_

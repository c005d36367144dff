#ifndef ENGRAM_CORE_MODEL_NUMBER_FORMATS_H_
#define ENGRAM_CORE_MODEL_NUMBER_FORMATS_H_

#include <cstdint>
#include <cstring>

// The one arithmetic core: the same functions run on the CPU and, compiled by
// nvcc, on the GPU, so that the CPU's tests prove what the GPU computes.
#ifdef __CUDACC__
#define ENGRAM_HOST_DEVICE __host__ __device__
#else
#define ENGRAM_HOST_DEVICE
#endif

namespace engram {

ENGRAM_HOST_DEVICE inline float FloatFromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

ENGRAM_HOST_DEVICE inline uint32_t BitsFromFloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// e4m3 (fn): sign, 4 exponent bits of bias 7, 3 mantissa bits, no infinity;
// 0x7F and 0xFF are NaN. Exact in float32.
ENGRAM_HOST_DEVICE inline float E4m3ToFloat(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t magnitude = code & 0x7F;
  if (magnitude == 0x7F) return FloatFromBits(sign | 0x7FC00000);
  if (magnitude < 8) {  // subnormal: mantissa * 2^-9
    const float value = static_cast<float>(magnitude) * 0.001953125F;
    return FloatFromBits(sign | BitsFromFloat(value));
  }
  return FloatFromBits(sign | ((magnitude << 20) + (120U << 23)));
}

// e8m0: 2^(code - 127), subnormal for code 0; 255 is NaN.
ENGRAM_HOST_DEVICE inline float E8m0ToFloat(uint8_t code) {
  if (code == 255) return FloatFromBits(0x7FC00000);
  if (code == 0) return FloatFromBits(0x00400000);
  return FloatFromBits(static_cast<uint32_t>(code) << 23);
}

ENGRAM_HOST_DEVICE inline float Bf16ToFloat(uint16_t bits) {
  return FloatFromBits(static_cast<uint32_t>(bits) << 16);
}

// Nearest bf16, ties to even; NaN stays NaN.
ENGRAM_HOST_DEVICE inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = BitsFromFloat(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

ENGRAM_HOST_DEVICE inline float RoundToBf16(float value) {
  return Bf16ToFloat(FloatToBf16(value));
}

// Nearest e4m3 value (ties to even) of `value` clamped to +-448, as float32.
// REQUIRES: not NaN.
ENGRAM_HOST_DEVICE inline float RoundToE4m3(float value) {
  const uint32_t sign = BitsFromFloat(value) & 0x80000000;
  float magnitude = FloatFromBits(BitsFromFloat(value) & 0x7FFFFFFF);
  if (magnitude > 448.0F) magnitude = 448.0F;
  // Adding 2^23 steps and taking them away rounds to a multiple of the step
  // (2^(exponent - 3), not below 2^-9) with ties to even.
  uint32_t exponent = BitsFromFloat(magnitude) >> 23;
  if (exponent < 121) exponent = 121;  // below 2^-6: the subnormal step
  const float shifter = FloatFromBits((exponent + 20) << 23);
  const float rounded = (magnitude + shifter) - shifter;
  return FloatFromBits(sign | BitsFromFloat(rounded));
}

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_NUMBER_FORMATS_H_

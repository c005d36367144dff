#include "tests/gpu/emulator/mma.h"

#include <cstddef>
#include <cstdint>

#include "core/model/number_formats.h"

namespace engram::emulator {
namespace {

constexpr size_t kM = 16;
constexpr size_t kN = 8;
constexpr size_t kK = 16;

double Half(uint32_t pair, size_t half) {
  return Bf16ToFloat(static_cast<uint16_t>(pair >> (16 * half)));
}

uint32_t MultiplyBf16(uint32_t a, uint32_t b) {
  return FloatToBf16(Bf16ToFloat(static_cast<uint16_t>(a)) *
                     Bf16ToFloat(static_cast<uint16_t>(b)));
}

}  // namespace

// The layout of fragments is that of the PTX manual, section "Matrix
// fragments for mma.m16n8k16 with floating point type".
void MultiplyFragments(WarpOperands operands) {
  double a[kM][kK];
  double b[kK][kN];
  for (size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& from = *static_cast<const MmaFragments*>(operands[lane]);
    const size_t group = lane / 4;
    const size_t pair = lane % 4 * 2;
    for (size_t half = 0; half < 2; ++half) {
      for (size_t i = 0; i < 4; ++i) {
        a[group + i % 2 * 8][pair + i / 2 * 8 + half] = Half(from.a[i], half);
      }
      for (size_t i = 0; i < 2; ++i) {
        b[pair + i * 8 + half][group] = Half(from.b[i], half);
      }
    }
  }
  double sums[kM][kN] = {};
  for (size_t m = 0; m < kM; ++m) {
    for (size_t k = 0; k < kK; ++k) {
      for (size_t n = 0; n < kN; ++n) sums[m][n] += a[m][k] * b[k][n];
    }
  }
  for (size_t lane = 0; lane < kWarpLanes; ++lane) {
    float* const d = static_cast<const MmaFragments*>(operands[lane])->d;
    for (size_t i = 0; i < 4; ++i) {
      d[i] = static_cast<float>(
          d[i] + sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
    }
  }
}

uint32_t MultiplyBf16Pairs(uint32_t a, uint32_t b) {
  return MultiplyBf16(a >> 16, b >> 16) << 16 | MultiplyBf16(a, b);
}

}  // namespace engram::emulator

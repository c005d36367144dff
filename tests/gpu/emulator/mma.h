#ifndef ENGRAM_TESTS_GPU_EMULATOR_MMA_H_
#define ENGRAM_TESTS_GPU_EMULATOR_MMA_H_

#include <cstdint>

#include "tests/gpu/emulator/collective.h"

namespace engram::emulator {

// One lane's share of mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.
struct MmaFragments {
  float* d;           // [4], added to
  const uint32_t* a;  // [4]
  const uint32_t* b;  // [2]
};

// d += a * b for a warp of MmaFragments. Products are summed in double, where
// they are exact unless their sizes differ by more than 2^30, added to d and
// rounded once; the tensor cores' own rounding is not documented.
void MultiplyFragments(WarpOperands operands);

// Two bf16 products, each rounded to the nearest, ties to even.
uint32_t MultiplyBf16Pairs(uint32_t a, uint32_t b);

}  // namespace engram::emulator

#endif  // ENGRAM_TESTS_GPU_EMULATOR_MMA_H_

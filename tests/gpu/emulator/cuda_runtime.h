#ifndef ENGRAM_TESTS_GPU_EMULATOR_CUDA_RUNTIME_H_
#define ENGRAM_TESTS_GPU_EMULATOR_CUDA_RUNTIME_H_

#include <cstdint>

#include "tests/gpu/emulator/collective.h"

// Stands in for CUDA's header where device code is compiled for the emulator:
// what our kernels use of it, under CUDA's names.

#define __global__ __attribute__((unused))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// Blocks run one after another. Not poisoned, unlike SharedBytes().
#define __shared__ static

// As aligned as on the device, so that a misaligned access shows.
struct uint2 {
  uint32_t x, y;
} __attribute__((aligned(8)));
struct uint3 {
  uint32_t x, y, z;
};
struct uint4 {
  uint32_t x, y, z, w;
} __attribute__((aligned(16)));
struct float2 {
  float x, y;
} __attribute__((aligned(8)));
struct float4 {
  float x, y, z, w;
} __attribute__((aligned(16)));
struct dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  return {x, y, z, w};
}
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

// Those of the thread that runs now.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

inline void __syncthreads() { engram::emulator::BlockBarrier(); }
inline void __syncwarp() {
  engram::emulator::WarpCollective("__syncwarp", nullptr,
                                   [](engram::emulator::WarpOperands) {});
}

#endif  // ENGRAM_TESTS_GPU_EMULATOR_CUDA_RUNTIME_H_

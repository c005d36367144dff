#ifndef ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_KERNEL_CUH_
#define ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "tests/gpu/check/fill_random_core.h"

namespace engram::gpu_check {

__global__ void __launch_bounds__(kFillThreads)
    FillRandomKernel(FillRandomArgs args) {
  const uint64_t stride = uint64_t{gridDim.x} * kFillThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kFillThreads + threadIdx.x;
       i < args.count; i += stride) {
    const uint64_t word = RandomWord(args.seed, i);
    args.words[i] = args.as_bf16 != 0 ? FourBf16(word) : word;
  }
}

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "tests/gpu/check/fill_random_kernel.cuh"
#include "tests/gpu/check/fill_random_launch.h"

namespace engram::gpu_check {

int LaunchFillRandom(const FillRandomArgs& args, GpuStreamHandle stream) {
  if (args.count == 0) return cudaSuccess;
  const uint64_t blocks = (args.count + kFillThreads - 1) / kFillThreads;
  const auto grid =
      static_cast<uint32_t>(blocks < kFillBlocks ? blocks : kFillBlocks);
  FillRandomKernel<<<grid, kFillThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace engram::gpu_check

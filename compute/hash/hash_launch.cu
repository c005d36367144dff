#include <cuda_runtime.h>

#include "compute/hash/hash_kernel.cuh"
#include "compute/hash/hash_launch.h"
#include "compute/hash/hash_shape.h"

namespace engram {

int LaunchHash(const HashArgs& args, GpuStreamHandle stream) {
  if (args.batch.token_count == 0) return cudaSuccess;
  const LaunchShape shape = HashShape(args.batch.token_count);
  gpu::HashKernel<<<shape.grid_x, shape.block_x, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace engram

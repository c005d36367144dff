#include <cuda_runtime.h>

#include "compute/dequant/decode_kernel.cuh"
#include "compute/dequant/decode_launch.h"
#include "compute/dequant/decode_shape.h"

namespace engram {

int LaunchDecode(const DecodeArgs& args, GpuStreamHandle stream) {
  if (args.token_count == 0) return cudaSuccess;
  const DecodeShape shape = MakeDecodeShape(args);
  VisitDecodeKernel(args, shape, [&](auto* kernel) {
    kernel<<<shape.launch.grid_x, shape.launch.block_x, 0, stream>>>(args);
  });
  return cudaGetLastError();
}

}  // namespace engram

#include <cuda_runtime.h>

#include <cstdint>

#include "compute/gate/gate_core.h"
#include "compute/gate/gate_kernel.cuh"
#include "compute/gate/gate_launch.h"
#include "compute/gate/gate_shape.h"

namespace engram {
namespace {

// More has to be asked for, and always as much as any launch needs: one thread
// must not lower what another has just asked for.
constexpr uint32_t kPlainSharedBytes = 48 << 10;
constexpr uint32_t kMostSharedBytes = GateReduceBytes(1) + kMaxGateDim * 4;

}  // namespace

int LaunchGate(const GateArgs& args, GpuStreamHandle stream) {
  if (args.token_count == 0) return cudaSuccess;
  const GateShape shape = MakeGateShape(args);
  const LaunchShape& launch = shape.launch;
  cudaError_t error = cudaSuccess;
  VisitGateKernel(args.dtype, shape, [&](auto* kernel) {
    if (launch.shared_bytes > kPlainSharedBytes) {
      error = cudaFuncSetAttribute(kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(kMostSharedBytes));
    }
    if (error != cudaSuccess) return;
    kernel<<<launch.grid_x, launch.block_x, launch.shared_bytes, stream>>>(
        args, InverseSqrtDim(args.dim), shape.kept_bytes);
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace engram

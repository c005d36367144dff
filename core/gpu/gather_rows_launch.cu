#include <cuda_runtime.h>

#include <cstdint>

#include "core/gpu/gather_rows_kernel.cuh"
#include "core/gpu/gather_rows_launch.h"
#include "core/gpu/gather_rows_shape.h"

namespace engram {
namespace {

template <typename Word>
int Launch(const GatherRowsArgs& args, const GatherRowsShape& shape,
           GpuStreamHandle stream) {
  gpu::GatherRowsKernel<Word>
      <<<shape.launch.grid_x, shape.launch.block_x, 0, stream>>>(
          args, shape.rows_per_warp, shape.segments_per_row);
  return cudaGetLastError();
}

}  // namespace

int LaunchGatherRows(const GatherRowsArgs& args, GpuStreamHandle stream) {
  if (args.count == 0) return cudaSuccess;
  const GatherRowsShape shape =
      MakeGatherRowsShape(args.count, args.table.row_bytes);
  switch (shape.word_bytes) {
    case 16:
      return Launch<uint4>(args, shape, stream);
    case 8:
      return Launch<uint2>(args, shape, stream);
    case 4:
      return Launch<uint32_t>(args, shape, stream);
    case 2:
      return Launch<uint16_t>(args, shape, stream);
    default:
      return Launch<uint8_t>(args, shape, stream);
  }
}

}  // namespace engram

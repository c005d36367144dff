#ifndef ENGRAM_CORE_GPU_GATHER_ROWS_LAUNCH_H_
#define ENGRAM_CORE_GPU_GATHER_ROWS_LAUNCH_H_

#include "core/gpu/gather_rows_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts the gather on the stream and returns the launch's cudaError_t. Checks
// nothing: gpu_gather.h does.
int LaunchGatherRows(const GatherRowsArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GATHER_ROWS_LAUNCH_H_

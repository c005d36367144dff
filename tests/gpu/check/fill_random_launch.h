#ifndef ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_LAUNCH_H_
#define ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_LAUNCH_H_

#include "core/gpu/gpu_types.h"
#include "tests/gpu/check/fill_random_core.h"

namespace engram::gpu_check {

// Returns the cudaError_t of the launch.
int LaunchFillRandom(const FillRandomArgs& args, GpuStreamHandle stream);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_LAUNCH_H_

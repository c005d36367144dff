#ifndef ENGRAM_CORE_GPU_GPU_TYPES_H_
#define ENGRAM_CORE_GPU_GPU_TYPES_H_

#include <cstdint>

// CUDA's handles, for headers that must not include CUDA's.
struct CUstream_st;
struct CUevent_st;

namespace engram {

using GpuStreamHandle = CUstream_st*;
using GpuEventHandle = CUevent_st*;

// How a kernel is launched. Computed by pure functions of the host, so that
// tests can check coverage and limits without a device.
struct LaunchShape {
  uint32_t grid_x = 1;  // below 2^31; y and z below 2^16
  uint32_t grid_y = 1;
  uint32_t grid_z = 1;
  uint32_t block_x = 1;
  uint32_t block_y = 1;
  uint32_t shared_bytes = 0;  // dynamic shared memory of a block

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GPU_TYPES_H_

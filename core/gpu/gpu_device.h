#ifndef ENGRAM_CORE_GPU_GPU_DEVICE_H_
#define ENGRAM_CORE_GPU_GPU_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace engram {

struct GpuDevice {
  int index = 0;
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int sm_count = 0;
  uint64_t memory_bytes = 0;
  uint64_t shared_bytes_per_block = 0;  // that a kernel may ask for
};

// The devices of this machine, at least one. In every build: without GPU code
// UNIMPLEMENTED; without a driver or a device NOT_FOUND, saying which.
absl::StatusOr<std::vector<GpuDevice>> ListGpuDevices();

// Makes `index` the calling thread's device.
absl::Status SelectGpuDevice(int index);

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GPU_DEVICE_H_

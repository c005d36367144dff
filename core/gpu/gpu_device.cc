#include "core/gpu/gpu_device.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "core/gpu/gpu_status.h"

namespace engram {

absl::StatusOr<std::vector<GpuDevice>> ListGpuDevices() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count);
      error != cudaSuccess) {
    cudaGetLastError();
    return GpuStatus(error, "looking for GPUs");
  }
  if (count == 0) return absl::NotFoundError("this machine has no GPU");
  std::vector<GpuDevice> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    ENGRAM_RETURN_IF_GPU_ERROR(cudaGetDeviceProperties(&properties, index),
                               absl::StrCat("properties of GPU ", index));
    devices.push_back(
        {.index = index,
         .name = properties.name,
         .major = properties.major,
         .minor = properties.minor,
         .sm_count = properties.multiProcessorCount,
         .memory_bytes = properties.totalGlobalMem,
         .shared_bytes_per_block = properties.sharedMemPerBlockOptin});
  }
  return devices;
}

absl::Status SelectGpuDevice(int index) {
  return GpuStatus(cudaSetDevice(index), absl::StrCat("selecting GPU ", index));
}

}  // namespace engram

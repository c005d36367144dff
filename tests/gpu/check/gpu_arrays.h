#ifndef ENGRAM_TESTS_GPU_CHECK_GPU_ARRAYS_H_
#define ENGRAM_TESTS_GPU_CHECK_GPU_ARRAYS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_status.h"

// Arrays to the device and back, waiting for each.

namespace engram::gpu_check {

template <typename T>
absl::StatusOr<DeviceBuffer> Upload(const std::vector<T>& values) {
  return DeviceBuffer::UploadArray<T>(values);
}

// The first `count` values of `buffer`. Whoever writes to it must be done.
template <typename T>
absl::StatusOr<std::vector<T>> Download(const DeviceBuffer& buffer,
                                        size_t count) {
  std::vector<T> values(count);
  if (count == 0) return values;
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaMemcpy(values.data(), buffer.data(), count * sizeof(T),
                 cudaMemcpyDeviceToHost),
      "copy of a result to the host");
  return values;
}

// Every byte `poison`.
inline absl::StatusOr<DeviceBuffer> AllocatePoisoned(size_t size_bytes,
                                                     uint8_t poison) {
  ENGRAM_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                          DeviceBuffer::Allocate(size_bytes));
  if (size_bytes == 0) return buffer;
  ENGRAM_RETURN_IF_GPU_ERROR(cudaMemset(buffer.data(), poison, size_bytes),
                             "poisoning an output");
  // A memset of the default stream may still run when it returns.
  ENGRAM_RETURN_IF_GPU_ERROR(cudaDeviceSynchronize(), "poisoning an output");
  return buffer;
}

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_GPU_ARRAYS_H_

#ifndef ENGRAM_CORE_GPU_GPU_STATUS_H_
#define ENGRAM_CORE_GPU_GPU_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace engram {

// What a cudaError_t says, as "WHAT: cudaErrorName: text".
// RESOURCE_EXHAUSTED: no memory; NOT_FOUND: no driver or no device;
// otherwise INTERNAL. After an error of a kernel (an illegal address, say)
// every later call of the process fails with it: CUDA cannot go on.
absl::Status GpuStatus(int cuda_error, absl::string_view what);

}  // namespace engram

#define ENGRAM_RETURN_IF_GPU_ERROR(call, what)               \
  do {                                                       \
    if (const int engram_gpu_error = static_cast<int>(call); \
        engram_gpu_error != 0) {                             \
      return ::engram::GpuStatus(engram_gpu_error, (what));  \
    }                                                        \
  } while (false)

#endif  // ENGRAM_CORE_GPU_GPU_STATUS_H_

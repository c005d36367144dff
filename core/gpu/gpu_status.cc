#include "core/gpu/gpu_status.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace engram {

absl::Status GpuStatus(int cuda_error, absl::string_view what) {
  if (cuda_error == 0) return absl::OkStatus();
  // CUDA keeps it until somebody asks, and what asks next is a launch, which
  // would take it for its own.
  cudaGetLastError();
  const auto error = static_cast<cudaError_t>(cuda_error);
  const std::string message = absl::StrCat(what, ": ", cudaGetErrorName(error),
                                           ": ", cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
      return absl::NotFoundError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace engram

#include "tests/gpu/check/matmul_ceiling.h"

namespace engram::gpu_check {

std::string MatmulCeilingName(size_t) { return "cuBLASLt bf16"; }

absl::StatusOr<double> MatmulRate(GpuContext&, const MatmulSizes&) {
  return absl::NotFoundError("no cuBLASLt on the CPU");
}

}  // namespace engram::gpu_check

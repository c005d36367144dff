#ifndef ENGRAM_TESTS_GPU_CHECK_MATMUL_CEILING_H_
#define ENGRAM_TESTS_GPU_CHECK_MATMUL_CEILING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/gpu/check/gpu_context.h"

namespace engram::gpu_check {

struct MatmulSizes {
  uint32_t in = 0;
  uint32_t out = 0;
  size_t tokens = 0;
};

// Operations per second of cuBLASLt's bf16 product of these sizes, the fastest
// of the algorithms that it proposes, with a workspace; measured when first
// asked for, and in the report then. NOT_FOUND: there is no cuBLASLt.
absl::StatusOr<double> MatmulRate(GpuContext& context,
                                  const MatmulSizes& sizes);

// The name of that ceiling.
std::string MatmulCeilingName(size_t tokens);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_MATMUL_CEILING_H_

#ifndef ENGRAM_TESTS_GPU_CHECK_PROJECTION_CASES_H_
#define ENGRAM_TESTS_GPU_CHECK_PROJECTION_CASES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/project/fragment_layout.h"
#include "compute/project/projection_weights.h"
#include "core/base/thread_pool.h"
#include "tests/gpu/check/random_inputs.h"

// A projection's inputs, and what its results are compared with.

namespace engram::gpu_check {

struct RandomWeights {
  uint32_t in = 0;
  uint32_t out = 0;
  std::vector<uint8_t> codes;   // [out, in]
  std::vector<uint8_t> scales;  // [ceil(out / 32), in / 32]

  ProjectionWeights View() const { return {in, out, codes, scales}; }
  float At(size_t feature, size_t k) const;
};

RandomWeights MakeWeights(uint32_t in, uint32_t out, Random& random);

// bf16 [tokens, in], decoded from random rows, tiny ones too, as the
// projection gets them.
std::vector<uint16_t> RandomTokens(Random& random, size_t tokens, uint32_t in);

// Tokens [first, first + count) as `layout` wants them, in FragmentCount
// values; those that stand for no token 0.
std::vector<uint16_t> InLayout(absl::Span<const uint16_t> values, uint32_t in,
                               size_t first, size_t count, TokenLayout layout);

// By Projection.
absl::StatusOr<std::vector<uint16_t>> ProjectOnCpu(
    const RandomWeights& weights, absl::Span<const uint16_t> values,
    ThreadPool* pool);

// `samples` random outputs against sums in double precision: within 1 bf16 ulp
// or 1e-5 of the sum of magnitudes, where that is more.
absl::Status CompareWithDouble(const RandomWeights& weights,
                               absl::Span<const uint16_t> values,
                               absl::Span<const uint16_t> kv, size_t samples,
                               Random& random);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_PROJECTION_CASES_H_

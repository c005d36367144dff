#ifndef ENGRAM_COMPUTE_PROJECT_PROJECTION_WEIGHTS_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECTION_WEIGHTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/thread_pool.h"

namespace engram {

// Features, and values of K, that share a scale.
inline constexpr uint32_t kWeightBlock = 32;

// wkv as the checkpoint stores it.
struct ProjectionWeights {
  uint32_t in = 0;                   // K, a multiple of 32
  uint32_t out = 0;                  // N
  absl::Span<const uint8_t> codes;   // e4m3 [N, K]
  absl::Span<const uint8_t> scales;  // e8m0 [ceil(N / 32), K / 32]
};

// INVALID_ARGUMENT: sizes that do not fit, NaN codes or scales.
absl::Status CheckProjectionWeights(const ProjectionWeights& weights,
                                    ThreadPool* pool);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECTION_WEIGHTS_H_

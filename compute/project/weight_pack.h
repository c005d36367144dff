#ifndef ENGRAM_COMPUTE_PROJECT_WEIGHT_PACK_H_
#define ENGRAM_COMPUTE_PROJECT_WEIGHT_PACK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/project/projection_mode.h"
#include "compute/project/projection_weights.h"
#include "core/base/thread_pool.h"

namespace engram {

// Weights in the forms that the GPU reads, made on the host at load. All need
// weights that CheckProjectionWeights has passed.

// The layouts of fragment_layout.h.
// REQUIRES: codes.size() == PackedCodeCount(out, in), zeros;
// scales.size() == PackedScaleCount(out, in), zeros.
void PackWeights(const ProjectionWeights& weights, ThreadPool* pool,
                 absl::Span<uint8_t> codes, absl::Span<float> scales);

// bf16 [out, in]: code * 2^(scale - 127).
// INVALID_ARGUMENT names a scale with which a code is not exact in bf16;
// `values` is then unspecified.
// REQUIRES: values.size() == out * in.
absl::Status ExpandWeights(const ProjectionWeights& weights, ThreadPool* pool,
                           absl::Span<uint16_t> values);

// What a GPU holds of them.
uint64_t GpuWeightBytes(uint32_t in, uint32_t out, ProjectionMode mode);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_WEIGHT_PACK_H_

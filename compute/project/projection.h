#ifndef ENGRAM_COMPUTE_PROJECT_PROJECTION_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/project/projection_weights.h"
#include "core/base/page_buffer.h"
#include "core/base/thread_pool.h"

namespace engram {

// wkv of one layer: kv[m, n] = bf16(sum_k rows[m, k] * weight[n, k]).
//
// Sums are float32 in the order of K, by blocks of 32 as in the reference:
// within a block rows times unscaled codes, then the block's part times the
// weights' scale. Row values above 2^105 (row scales above 224; a trained
// table has some 120) overflow a block's part to infinity, where the
// reference, which scales last, may not. Every output has one order of K,
// whatever the number of tokens or threads: the result is batch-invariant to
// the bit on one kind of CPU.
//
// Immutable. Thread safety: all methods may be called concurrently.
class Projection {
 public:
  using Weights = ProjectionWeights;

  // Repacks the codes (they stay fp8: one byte a weight) for the kernels.
  // INVALID_ARGUMENT as from CheckProjectionWeights.
  static absl::StatusOr<std::unique_ptr<const Projection>> Create(
      const Weights& weights, ThreadPool* pool);

  // rows: float32 [tokens, K] as DecodeRowsForProjection gives them.
  // kv: bf16 bits [tokens, N].
  void Project(absl::Span<const float> rows, absl::Span<uint16_t> kv,
               ThreadPool* pool) const;

  uint32_t in() const { return in_; }
  uint32_t out() const { return out_; }

 private:
  Projection(uint32_t in, uint32_t out) : in_(in), out_(out) {}

  const uint32_t in_;
  const uint32_t out_;
  PageBuffer packed_codes_;
  PageBuffer packed_scales_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECTION_H_

#ifndef ENGRAM_COMPUTE_PROJECT_GPU_PROJECTION_H_
#define ENGRAM_COMPUTE_PROJECT_GPU_PROJECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/project/fragment_layout.h"
#include "compute/project/projection_mode.h"
#include "compute/project/projection_weights.h"
#include "core/base/thread_pool.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// `wanted`, or kInvariant with one line in the log where kFast was wanted and
// cuBLASLt cannot be loaded.
ProjectionMode UsableProjectionMode(ProjectionMode wanted);

// wkv of one layer on a GPU: kv[m, n] = bf16(sum_k rows[m, k] * weight[n, k]),
// sums in float32 by blocks of 32 of K in their order, each block's sum by the
// tensor cores. Like Projection, with sums within a block in another order.
//
// kInvariant: the weights stay fp8, and an output's bits depend on nothing but
// its own weights and row.
// kFast: so for up to kInvariantTokens tokens, which wait for the weights and
// not for arithmetic; more go through cuBLASLt on a bf16 copy of the weights.
//
// Immutable. Thread safety: all methods may be called concurrently; whose
// buffers they use is the caller's to settle.
class GpuProjection {
 public:
  struct Options {
    ProjectionMode mode = ProjectionMode::kInvariant;
    size_t max_tokens = 4096;  // of one Project
  };
  static constexpr size_t kInvariantTokens = 64;

  // Packs the weights with `pool`, which is not kept, and uploads them to the
  // selected device, where all calls must be made.
  // INVALID_ARGUMENT: as CheckProjectionWeights; sizes beyond what the kernels
  // can count; with kFast a scale with which codes are not exact in bf16.
  // RESOURCE_EXHAUSTED. With kFast also NOT_FOUND or FAILED_PRECONDITION: no
  // usable cuBLASLt; UNIMPLEMENTED: it cannot do the sizes.
  static absl::StatusOr<std::unique_ptr<const GpuProjection>> Create(
      const ProjectionWeights& weights, const Options& options,
      ThreadPool* pool);
  virtual ~GpuProjection() = default;

  // How Project wants that many tokens. A buffer of FragmentCount(token_count,
  // in()) values holds either.
  virtual TokenLayout token_layout(size_t token_count) const = 0;

  // Puts the product on the stream and returns; may be recorded into a CUDA
  // graph. Addresses are the device's, aligned to 16 bytes.
  // tokens: bf16 in token_layout(token_count), where 8 tokens stand together
  // the missing ones 0. kv: bf16 [token_count, out()].
  // INVALID_ARGUMENT: more than max_tokens, an address that is not aligned.
  // INTERNAL: the launch failed.
  virtual absl::Status Project(const uint16_t* tokens, size_t token_count,
                               uint16_t* kv, GpuStreamHandle stream) const = 0;

  virtual uint32_t in() const = 0;
  virtual uint32_t out() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_GPU_PROJECTION_H_

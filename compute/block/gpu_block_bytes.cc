#include "compute/block/gpu_block.h"
#include "compute/block/gpu_slot_sizes.h"
#include "compute/project/fragment_layout.h"

namespace engram {
namespace {

// What CUDA keeps for itself once it has started, and for kernels and graphs.
constexpr uint64_t kCudaBytes = uint64_t{1} << 30;

uint64_t WeightBytes(const EngramConfig& config, ProjectionMode mode) {
  const size_t in = config.wkv_in();
  const size_t out = config.wkv_out();
  constexpr uint64_t kBf16Bytes = sizeof(uint16_t);
  const uint64_t gate = uint64_t{config.hc_mult} * config.dim * sizeof(float);
  const uint64_t packed =
      PackedCodeCount(out, in) + sizeof(float) * PackedScaleCount(out, in);
  // A copy for cuBLASLt, beside the codes for few tokens.
  const uint64_t copy =
      mode == ProjectionMode::kFast ? kBf16Bytes * in * out : 0;
  return gate + packed + copy;
}

}  // namespace

uint64_t GpuBlockBytes(const EngramConfig& config, const RowFormat& row_format,
                       const GpuBlockOptions& options) {
  const uint64_t slot =
      GpuSlotSizes::For(config, row_format, options.tile_tokens).DeviceBytes();
  return kCudaBytes + options.slots * slot +
         config.layer_ids.size() * WeightBytes(config, options.projection);
}

}  // namespace engram

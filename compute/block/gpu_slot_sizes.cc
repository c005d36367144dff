#include "compute/block/gpu_slot_sizes.h"

#include "compute/gate/gate.h"
#include "compute/project/fragment_layout.h"

namespace engram {

GpuSlotSizes GpuSlotSizes::For(const EngramConfig& config,
                               const RowFormat& row_format, size_t tokens) {
  constexpr size_t kBf16Bytes = sizeof(uint16_t);
  GpuSlotSizes sizes;
  sizes.tokens = tokens;
  sizes.rows = tokens * config.columns() * row_format.row_bytes();
  sizes.values = FragmentCount(tokens, config.wkv_in()) * kBf16Bytes;
  sizes.kv = tokens * config.wkv_out() * kBf16Bytes;
  sizes.streams =
      tokens * config.hc_mult * config.dim * StreamBytes(StreamDtype::kF32);
  sizes.gate = tokens * config.hc_mult * sizeof(float);
  sizes.value = tokens * config.dim * kBf16Bytes;
  return sizes;
}

}  // namespace engram

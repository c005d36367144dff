#ifndef ENGRAM_COMPUTE_BLOCK_GPU_SLOT_SIZES_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_SLOT_SIZES_H_

#include <cstddef>
#include <cstdint>

#include "core/model/config.h"
#include "core/model/row_format.h"

namespace engram {

// Bytes of the fixed buffers that a tile of up to `tokens` tokens needs on a
// GPU. Pure arithmetic: whether a device will do is decided without one.
struct GpuSlotSizes {
  static GpuSlotSizes For(const EngramConfig& config,
                          const RowFormat& row_format, size_t tokens);

  size_t tokens = 0;
  size_t rows = 0;     // packed
  size_t values = 0;   // the rows decoded, bf16
  size_t kv = 0;       // bf16
  size_t streams = 0;  // for float32, the larger dtype; in and out
  size_t gate = 0;     // float32
  size_t value = 0;    // bf16

  uint64_t DeviceBytes() const {
    return uint64_t{rows} + values + kv + streams + gate + value;
  }
  // On the host, for the copies: kv stays on the device.
  uint64_t PinnedBytes() const {
    return uint64_t{rows} + streams + gate + value;
  }
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_SLOT_SIZES_H_

#ifndef ENGRAM_CORE_GPU_GATHER_ROWS_SHAPE_H_
#define ENGRAM_CORE_GPU_GATHER_ROWS_SHAPE_H_

#include <cstdint>

#include "core/gpu/gpu_types.h"
#include "core/model/number_formats.h"

// How the rows of a gather are dealt out. A warp takes `rows_per_warp` rows
// that follow each other. A row is read in segments that end where memory
// does: lanes of a group read one segment, each one word of it, so that every
// line of 128 bytes is asked for once. That matters most over PCIe, where each
// request has a price, and rows of 264 bytes straddle lines at every offset.

namespace engram {

inline constexpr uint32_t kGatherThreads = 256;

struct GatherRowsShape {
  LaunchShape launch;
  uint32_t word_bytes = 0;     // 16, 8, 4, 2 or 1: what a lane reads at a time
  uint32_t rows_per_warp = 0;  // <= 32, a multiple of the warp's groups
  uint32_t segments_per_row = 0;  // the most that a row can touch
};

// Lanes of a group, for words of this size.
ENGRAM_HOST_DEVICE constexpr uint32_t GatherGroupLanes(uint32_t word_bytes) {
  return word_bytes >= 4 ? 128 / word_bytes : 32;
}

// REQUIRES: 0 < count < 2^32, 0 < row_bytes <= kMaxGatherRowBytes.
GatherRowsShape MakeGatherRowsShape(uint64_t count, uint32_t row_bytes);

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GATHER_ROWS_SHAPE_H_

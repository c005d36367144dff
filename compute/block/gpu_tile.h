#ifndef ENGRAM_COMPUTE_BLOCK_GPU_TILE_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_TILE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compute/block/gpu_layer_step.h"
#include "compute/block/gpu_slot.h"
#include "compute/block/rows_pool.h"
#include "compute/block/step_spans.h"
#include "core/base/thread_pool.h"

namespace engram {

// Live tokens [first, first + count) of a step, to be computed at once.
struct GpuTile {
  const StepSpans& step;
  const GpuLayerStep& layer;
  size_t layer_index = 0;
  size_t first = 0;
  size_t count = 0;  // at most the slot's
};

// Who helps with a tile on the host.
struct GpuTileHelp {
  const RowsPool& pinned_rows;  // rows that lie in it are copied from there
  ThreadPool* pool = nullptr;   // may be null
};

// Copies a tile's rows and streams to the slot, computes, and writes the
// outputs that the step asks for. Rows travel and are waited for apart:
//
//   side: rows in -> [large tiles: decode, project] -> rows_ready
//   main: streams in -> wait -> [small tiles: a graph of decode, project and
//         gate; large ones: gate] -> outputs out
//
// After an error work may still be under way in the slot.
absl::Status ComputeTile(const GpuTile& tile, const GpuTileHelp& help,
                         absl::Time deadline, GpuSlot& slot);

// Runs the kernels of every size of tile once, for CUDA loads a kernel when it
// first runs, which a graph cannot record.
absl::Status WarmUp(const GpuLayerStep& layer, absl::Time deadline,
                    GpuSlot& slot);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_TILE_H_

#ifndef ENGRAM_COMPUTE_BLOCK_GPU_BLOCK_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compute/block/engram_block.h"
#include "compute/project/projection_mode.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/token_map.h"

namespace engram {

struct GpuBlockOptions {
  int device = 0;  // its index in ListGpuDevices()
  // What is wanted: without cuBLASLt kFast gives way to kInvariant, with one
  // line in the log.
  ProjectionMode projection = ProjectionMode::kInvariant;
  // Copies to and from pinned memory; null: the calling thread does. Outlives
  // the block.
  ThreadPool* pool = nullptr;
  // Tiles that are on the device at a time, each with buffers of its own.
  size_t slots = 4;
  size_t tile_tokens = 1024;
  uint64_t pinned_rows_bytes = uint64_t{512} << 20;  // of AllocateRows
  // How long a Forward waits for a slot, and then for the device.
  absl::Duration slot_timeout = absl::Seconds(10);
  absl::Duration device_timeout = absl::Seconds(30);
};

// Device memory that a block takes, and what CUDA itself does. Pure
// arithmetic.
uint64_t GpuBlockBytes(const EngramConfig& config, const RowFormat& row_format,
                       const GpuBlockOptions& options);

// The block of a GPU: all weights on the device, streams and rows copied there
// and back by tiles. Tokens that are dead never get there. With
// ProjectionMode::kInvariant a token's values do not depend on the others
// beside it, as on the CPU; gate and streams follow from kv with the CPU's
// bits.
//
// A failure of the device ends the block: health() then says why.
//
// UNIMPLEMENTED: a build without CUDA. RESOURCE_EXHAUSTED: too little memory.
// INVALID_ARGUMENT: the checkpoint's weights, or an option of 0.
absl::StatusOr<std::unique_ptr<const EngramBlock>> CreateGpuEngramBlock(
    const Checkpoint& checkpoint, const TokenMap& token_map,
    const GpuBlockOptions& options);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_BLOCK_H_

#ifndef ENGRAM_COMPUTE_BLOCK_ENGRAM_BLOCK_H_
#define ENGRAM_COMPUTE_BLOCK_ENGRAM_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/block/rows_buffer.h"
#include "compute/block/rows_pool.h"
#include "compute/gate/gate.h"
#include "compute/hash/ngram_hash.h"
#include "compute/project/projection_mode.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/token_map.h"

namespace engram {

// What one layer's step gives for a run of tokens. Empty spans are not
// written: ask for streams, or for gate and value, or (tests) for all.
struct BlockOutputs {
  absl::Span<std::byte> streams;  // [tokens, hc, dim] in the input's dtype
  absl::Span<float> gate;         // [tokens, hc], +0 at dead tokens
  absl::Span<uint16_t> value;     // bf16 [tokens, dim], +0 at dead tokens
  absl::Span<uint16_t> kv;        // bf16 [tokens, dim * (hc + 1)]; dead: 0
};

// How much of what a block bounds is taken now. All 0 where there is no bound.
struct BlockUse {
  RowsPoolUse rows;  // pinned memory of AllocateRows
  uint64_t slots_limit = 0;
  uint64_t slots_in_use = 0;  // tiles that are on the device
};

// The Engram step of every layer of a model: hash, then (with the rows from a
// RowSource) decode, project, gate. cpu_block.cc is the one of the CPU,
// gpu_block.h of a GPU; create_block.h chooses.
//
// Thread safety: all methods may be called concurrently; calls share the
// pool's threads.
class EngramBlock {
 public:
  // The CPU's. Reads the projection and gate weights of every layer, not the
  // tables. `pool` must outlive the block.
  static absl::StatusOr<std::unique_ptr<const EngramBlock>> Create(
      const Checkpoint& checkpoint, const TokenMap& token_map,
      ThreadPool* pool);
  virtual ~EngramBlock() = default;

  virtual const EngramConfig& config() const = 0;
  virtual const EngramLayout& layout() const = 0;
  virtual const RowFormat& row_format() const = 0;
  virtual const NgramHasher& hasher() const = 0;
  virtual ProjectionMode projection_mode() const = 0;
  // Tokens that are computed at a time: Forward cuts longer runs, so a caller
  // that wants to stop in between gives no more than so many.
  virtual size_t tile_tokens() const = 0;

  // Memory for fetched rows that suits the block: on a GPU pinned, as long as
  // there is some. The block outlives it. RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<RowsBuffer> AllocateRows(size_t size_bytes) const = 0;
  virtual BlockUse use() const = 0;

  // UNAVAILABLE, naming the cause: the block's device has failed, and every
  // Forward from now on fails so.
  virtual absl::Status health() const = 0;

  // One layer's step for a run of tokens.
  // packed_rows: [live tokens, columns] packed rows, dead tokens left out.
  // mask: one byte a token, empty: all live.
  // INVALID_ARGUMENT names the size that does not fit. Of a GPU also
  // RESOURCE_EXHAUSTED (every slot stayed in use, no memory), INTERNAL (the
  // device refused this call), DEADLINE_EXCEEDED (it was late with this call)
  // and that of health(); outputs are then unspecified.
  virtual absl::Status Forward(size_t layer_index, StreamDtype dtype,
                               absl::Span<const std::byte> packed_rows,
                               absl::Span<const std::byte> streams,
                               absl::Span<const uint8_t> mask,
                               const BlockOutputs& outputs) const = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_ENGRAM_BLOCK_H_

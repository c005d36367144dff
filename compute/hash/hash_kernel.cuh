#ifndef ENGRAM_COMPUTE_HASH_HASH_KERNEL_CUH_
#define ENGRAM_COMPUTE_HASH_HASH_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "compute/hash/hash_args.h"
#include "compute/hash/hash_core.h"
#include "compute/hash/hash_shape.h"
#include "core/gpu/ptx.cuh"

// Row ids of one token a warp. Lane i finds the token that lies i back; then
// each lane hashes a column, taking the tokens from the others.

namespace engram::gpu {

// The token id that lies `lane` back, kBlockedToken where there is none.
__device__ __forceinline__ uint32_t LookBack(const HashArgs& args,
                                             uint32_t token, uint32_t lane) {
  const HashModel& model = args.model;
  if (lane >= model.max_ngram_size) return kBlockedToken;
  const uint32_t slot = LoadStreaming(args.batch.positions + token);
  uint32_t id = kBlockedToken;
  bool bad = true;
  if (slot >= model.max_ngram_size - 1 && slot < args.batch.slot_count) {
    id = LoadStreaming(args.batch.ids + (slot - lane));
    bad = id >= model.vocab_size && id != kBlockedToken;
  }
  if (bad) AtomicMin(args.batch.first_bad, token);
  return bad ? kBlockedToken : id;
}

// The compressed id that lies `lane` back. All older ones of a blocked one are
// blocked too; blocked ones count as pads.
__device__ __forceinline__ uint32_t CompressedLookBack(const HashArgs& args,
                                                       uint32_t token,
                                                       uint32_t lane) {
  const uint32_t id = LookBack(args, token, lane);
  uint32_t first_blocked = id == kBlockedToken ? lane : 32;
#pragma unroll
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    const uint32_t other = ShuffleXor(first_blocked, distance);
    first_blocked = other < first_blocked ? other : first_blocked;
  }
  return lane < first_blocked ? LoadCached(args.model.token_map + id)
                              : args.model.pad;
}

// Of this lane's column, from the compressed ids that the lanes have. All
// lanes of the warp must come.
__device__ __forceinline__ uint32_t HashOneColumn(const HashColumn& column,
                                                  const uint64_t* multipliers,
                                                  uint32_t max_ngram_size,
                                                  uint32_t lane_id) {
  uint64_t hash = 0;
  for (uint32_t back = 0; back < max_ngram_size; ++back) {
    const uint32_t id = Shuffle(lane_id, back);
    if (back < column.ngram_size) {
      hash = RollHash(hash, id, LoadCached(multipliers + back));
    }
  }
  return ColumnRow(hash, QuotientLow(hash, column.magic, column.shift),
                   column.prime, column.offset);
}

__global__ void __launch_bounds__(kHashThreads) HashKernel(HashArgs args) {
  const HashModel& model = args.model;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t token = blockIdx.x * (kHashThreads / 32) + threadIdx.x / 32;
  if (token >= args.batch.token_count) return;
  const uint32_t lane_id = CompressedLookBack(args, token, lane);
  for (uint32_t layer = 0; layer < model.layer_count; ++layer) {
    const uint64_t* const multipliers =
        model.multipliers + layer * model.max_ngram_size;
    const HashColumn* const columns =
        model.columns + layer * model.column_count;
    uint32_t* const row_ids =
        args.batch.row_ids +
        (uint64_t{layer} * args.batch.token_count + token) * model.column_count;
    for (uint32_t first = 0; first < model.column_count; first += 32) {
      const uint32_t column = first + lane;
      const uint32_t last = model.column_count - 1;
      const uint32_t row =
          HashOneColumn(columns[column < last ? column : last], multipliers,
                        model.max_ngram_size, lane_id);
      if (column <= last) StoreStreaming(row_ids + column, row);
    }
  }
}

}  // namespace engram::gpu

#endif  // ENGRAM_COMPUTE_HASH_HASH_KERNEL_CUH_

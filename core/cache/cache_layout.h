#ifndef ENGRAM_CORE_CACHE_CACHE_LAYOUT_H_
#define ENGRAM_CORE_CACHE_CACHE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace engram {

// How many rows a cache has within its bytes, and where what lies in its slab:
//
//   [ index ][ ghosts ][ next of each slot ][ slots ]
//
// each from the start of a cache line. Shards have equal parts of each.
struct CacheLayout {
  // Slots for one bucket of the index, which has room for twice as many: few
  // buckets overflow.
  static constexpr uint32_t kSlotsPerBucket = 4;
  // A bucket of ghosts remembers as many rows as that many buckets have slots.
  static constexpr uint32_t kBucketsPerGhostBucket = 4;

  uint32_t shard_count = 0;
  uint32_t slots_per_shard = 0;
  uint32_t buckets_per_shard = 0;
  uint32_t ghost_buckets_per_shard = 0;
  size_t index_bytes = 0;
  size_t ghost_bytes = 0;
  size_t next_bytes = 0;
  size_t slot_bytes = 0;
  bool in_pages = false;  // of 2 MiB; else on the heap
  // Of the slab, in whole pages where it has them.
  size_t slab_bytes = 0;

  uint64_t slots() const { return uint64_t{shard_count} * slots_per_shard; }

  // The largest one of at most `max_bytes`, of which each shard takes
  // `shard_bytes` beside the slab. INVALID_ARGUMENT: not one slot fits, or
  // there would be more than 32 bits can number; names the sums.
  static absl::StatusOr<CacheLayout> Within(uint64_t max_bytes,
                                            size_t row_bytes,
                                            size_t shard_bytes);
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_CACHE_LAYOUT_H_

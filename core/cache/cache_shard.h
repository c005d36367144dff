#ifndef ENGRAM_CORE_CACHE_CACHE_SHARD_H_
#define ENGRAM_CORE_CACHE_CACHE_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cache/cache_key.h"
#include "core/cache/cache_layout.h"
#include "core/cache/ghost_table.h"
#include "core/cache/row_index.h"
#include "core/cache/row_slots.h"
#include "core/cache/slot_queue.h"
#include "core/cache/try_lock.h"

namespace engram {

// What a shard works on: parts of these that nobody else writes.
struct CacheTables {
  RowSlots slots;
  RowIndex index;
  GhostTable ghosts;
  uint32_t* next;
  uint64_t hash_seed;
};

// Which rows stay, for a part of the rows: after S3-FIFO (Yang et al., "FIFO
// queues are all you need for cache eviction", SOSP 2023), without its small
// queue.
//
// Rows stand in one queue. What comes to its front goes back to its end as
// often as it was used, at most three times, else it is evicted. Uses are
// counted by those who read; nothing moves on a hit.
//
// There, a new row is on probation in a small queue, and leaves a fingerprint,
// a ghost, when it is evicted from that. Here, once all slots are used, the
// fingerprint is all that a new row leaves, and a row whose ghost is still
// there comes in. A scan changes nothing. Most rows that miss are never seen
// again: to write them took seven times as long, and under Zipf distributions
// the hit ratio was lower (tests/bench/row_cache_bench.cc).
//
// Two bounds of our own: a row whose bucket of the index is full takes the slot
// of an unused neighbour there, and an eviction looks at most at kMaxLooks
// slots.
//
// Thread safety: all methods may be called concurrently. Insert never waits.
class alignas(64) CacheShard {
 public:
  enum class Outcome {
    kInserted,  // a free slot was left
    kReplaced,  // a row was evicted for it
    kPresent,   // it was there
    kBusy,      // another thread was at the shard
    kNoted,     // only a ghost, as it had none
    kRefused,   // all rows of its bucket are in use
  };

  // `shard`: which of the layout's. `tables` outlive it.
  CacheShard(const CacheLayout& layout, uint32_t shard,
             const CacheTables& tables);

  // REQUIRES: `bucket`, the hash's, is of this shard.
  Outcome Insert(CacheKey key, uint64_t hash, uint64_t bucket,
                 const std::byte* row);

  uint32_t used_slots() const {
    return used_slots_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kMaxLooks = 64;
  static constexpr uint32_t kNone = ~uint32_t{0};

  Outcome InsertLocked(CacheKey key, uint64_t hash, uint64_t bucket,
                       const std::byte* row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // An entry of the bucket with the hash's tag: the row, or one that no reader
  // can tell from it by the index.
  uint32_t EntryLike(uint64_t hash, uint64_t bucket) const;
  uint32_t FreeEntry(uint64_t bucket) const;
  // One whose row nobody used lately; the others' uses count less from now on.
  uint32_t UnusedEntry(uint64_t bucket) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // A slot for a new row.
  uint32_t TakeSlot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  uint32_t Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Out of the index.
  void Forget(uint32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  uint64_t GhostBucketOf(uint64_t bucket) const {
    return first_ghost_bucket_ +
           (bucket - first_bucket_) / CacheLayout::kBucketsPerGhostBucket;
  }

  const CacheTables& tables_;
  const uint64_t first_bucket_;
  const uint64_t first_ghost_bucket_;
  const uint32_t first_slot_;
  const uint32_t slot_count_;

  TryLock lock_;
  GhostTable ghosts_ ABSL_GUARDED_BY(lock_);
  SlotQueue queue_ ABSL_GUARDED_BY(lock_);
  std::atomic<uint32_t> used_slots_{0};  // written under lock_
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_CACHE_SHARD_H_

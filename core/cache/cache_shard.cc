#include "core/cache/cache_shard.h"

namespace engram {

CacheShard::CacheShard(const CacheLayout& layout, uint32_t shard,
                       const CacheTables& tables)
    : tables_(tables),
      first_bucket_(uint64_t{shard} * layout.buckets_per_shard),
      first_ghost_bucket_(uint64_t{shard} * layout.ghost_buckets_per_shard),
      first_slot_(shard * layout.slots_per_shard),
      slot_count_(layout.slots_per_shard),
      ghosts_(tables.ghosts),
      queue_(tables.next) {}

CacheShard::Outcome CacheShard::Insert(CacheKey key, uint64_t hash,
                                       uint64_t bucket, const std::byte* row) {
  if (!lock_.Try()) return Outcome::kBusy;
  const Outcome outcome = InsertLocked(key, hash, bucket, row);
  lock_.Unlock();
  return outcome;
}

CacheShard::Outcome CacheShard::InsertLocked(CacheKey key, uint64_t hash,
                                             uint64_t bucket,
                                             const std::byte* row) {
  const RowIndex& index = tables_.index;
  const RowSlots& slots = tables_.slots;
  uint32_t entry = EntryLike(hash, bucket);
  if (entry != kNone && key.IsIn(slots.KeyWord(index.SlotAt(bucket, entry)))) {
    return Outcome::kPresent;
  }
  const bool is_full = used_slots() == slot_count_;
  const uint64_t ghost_bucket = GhostBucketOf(bucket);
  if (is_full && !ghosts_.Take(ghost_bucket, RowIndex::TagOf(hash))) {
    ghosts_.Add(ghost_bucket, RowIndex::TagOf(hash));
    return Outcome::kNoted;
  }
  if (entry == kNone) {
    // It stays free while a slot is taken, which at most frees others.
    if (const uint32_t free = FreeEntry(bucket); free != kNone) {
      const uint32_t slot = TakeSlot();
      slots.Write(slot, key, row);
      index.Set(bucket, free, hash, slot);
      queue_.Push(slot);
      return is_full ? Outcome::kReplaced : Outcome::kInserted;
    }
    entry = UnusedEntry(bucket);
    if (entry == kNone) return Outcome::kRefused;
  }
  // That row's slot, at its place in the queue.
  const uint32_t slot = index.SlotAt(bucket, entry);
  index.Set(bucket, entry, hash, slot);
  slots.Write(slot, key, row);
  return Outcome::kReplaced;
}

uint32_t CacheShard::EntryLike(uint64_t hash, uint64_t bucket) const {
  for (uint32_t i = 0; i < RowIndex::kEntries; ++i) {
    if (tables_.index.Matches(bucket, i, hash)) return i;
  }
  return kNone;
}

uint32_t CacheShard::FreeEntry(uint64_t bucket) const {
  for (uint32_t i = 0; i < RowIndex::kEntries; ++i) {
    if (tables_.index.SlotAt(bucket, i) == RowIndex::kNoSlot) return i;
  }
  return kNone;
}

uint32_t CacheShard::UnusedEntry(uint64_t bucket) const {
  uint32_t unused = kNone;
  for (uint32_t i = 0; i < RowIndex::kEntries; ++i) {
    const uint32_t slot = tables_.index.SlotAt(bucket, i);
    if (CacheKey::UsesIn(tables_.slots.KeyWord(slot)) == 0) {
      unused = i;
    } else {
      tables_.slots.TakeUse(slot);
    }
  }
  return unused;
}

uint32_t CacheShard::TakeSlot() {
  const uint32_t used = used_slots();
  if (used == slot_count_) return Evict();
  used_slots_.store(used + 1, std::memory_order_relaxed);
  return first_slot_ + used;
}

uint32_t CacheShard::Evict() {
  const RowSlots& slots = tables_.slots;
  for (uint32_t looks = 1;; ++looks) {
    const uint32_t slot = queue_.Pop();
    // The next eviction looks at it, which is soon.
    if (queue_.size() > 0) slots.PrefetchKey(queue_.front());
    if (looks == kMaxLooks || CacheKey::UsesIn(slots.KeyWord(slot)) == 0) {
      Forget(slot);
      return slot;
    }
    slots.TakeUse(slot);
    queue_.Push(slot);
  }
}

void CacheShard::Forget(uint32_t slot) {
  const CacheKey key(tables_.slots.KeyWord(slot));
  const uint64_t bucket = tables_.index.BucketOf(key.Hash(tables_.hash_seed));
  for (uint32_t i = 0; i < RowIndex::kEntries; ++i) {
    if (tables_.index.SlotAt(bucket, i) != slot) continue;
    return tables_.index.Clear(bucket, i);
  }
}

}  // namespace engram

#ifndef ENGRAM_CORE_CACHE_ROW_INDEX_H_
#define ENGRAM_CORE_CACHE_ROW_INDEX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/prefetch.h"

namespace engram {

// Where a row may be: buckets of one cache line, each of eight entries, 32
// bits of a hash and a slot. Only a hint: the slot says which row it has. So a
// reader needs no bucket at rest.
//
// Thread safety: Find may be called at any time. A bucket has one writer at a
// time; the caller sees to that.
class RowIndex {
 public:
  static constexpr uint32_t kEntries = 8;
  static constexpr size_t kBucketBytes = 64;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  // `words`: zeroed, aligned to a line, of `bucket_count` buckets.
  RowIndex(uint64_t* words, uint64_t bucket_count)
      : words_(words), bucket_count_(bucket_count) {}

  uint64_t BucketOf(uint64_t hash) const {
    return static_cast<uint64_t>(
        static_cast<unsigned __int128>(hash) * bucket_count_ >> 64);
  }
  void PrefetchBucket(uint64_t bucket) const { PrefetchBytes(At(bucket)); }

  // kNoSlot: no entry has the hash's 32 bits.
  uint32_t Find(uint64_t bucket, uint64_t hash) const {
    // Which entry matches cannot be foretold: no branch on it. Two may seem to,
    // as a row may move to another entry meanwhile: one of them is taken.
    uint64_t found = 0;
    for (uint32_t i = 0; i < kEntries; ++i) {
      const uint64_t entry = Load(bucket, i);
      found = TagIn(entry) == TagOf(hash) ? entry : found;
    }
    return SlotIn(found);
  }

  // For the bucket's writer.
  uint32_t SlotAt(uint64_t bucket, uint32_t i) const {
    return SlotIn(Load(bucket, i));
  }
  bool Matches(uint64_t bucket, uint32_t i, uint64_t hash) const {
    const uint64_t entry = Load(bucket, i);
    return entry != 0 && TagIn(entry) == TagOf(hash);
  }
  // REQUIRES: no other entry of the bucket matches `hash`.
  void Set(uint64_t bucket, uint32_t i, uint64_t hash, uint32_t slot) const {
    Store(bucket, i, uint64_t{TagOf(hash)} << 32 | (uint64_t{slot} + 1));
  }
  void Clear(uint64_t bucket, uint32_t i) const { Store(bucket, i, 0); }

  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash); }

 private:
  static uint32_t TagIn(uint64_t entry) {
    return static_cast<uint32_t>(entry >> 32);
  }
  // 0, which is no entry, gives kNoSlot.
  static uint32_t SlotIn(uint64_t entry) {
    return static_cast<uint32_t>(entry) - 1;
  }
  uint64_t* At(uint64_t bucket) const { return words_ + bucket * kEntries; }
  uint64_t Load(uint64_t bucket, uint32_t i) const {
    return std::atomic_ref<uint64_t>(At(bucket)[i])
        .load(std::memory_order_relaxed);
  }
  void Store(uint64_t bucket, uint32_t i, uint64_t entry) const {
    std::atomic_ref<uint64_t>(At(bucket)[i])
        .store(entry, std::memory_order_relaxed);
  }

  uint64_t* words_;
  uint64_t bucket_count_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_ROW_INDEX_H_

#ifndef ENGRAM_CORE_CACHE_ROW_SLOTS_H_
#define ENGRAM_CORE_CACHE_ROW_SLOTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/prefetch.h"
#include "core/cache/cache_key.h"

namespace engram {

// The rows of a cache, each with its key, in slots that are written anew while
// others read them.
//
// A slot is a seqlock: words of 8 bytes
//
//   [ sequence ][ key, uses ][ row, padded to whole words ]
//
// The sequence is odd while the slot is written, and never comes back: 64 bits
// do not wrap. All words are atomic. A reader that saw a word of a later
// writing acquired what came before that: the sequence of that writing, so it
// finds the sequence changed. No fence is needed, which tsan would not see; on
// x86 acquire and release cost nothing.
//
// Thread safety: Read and KeyWord may be called at any time. A slot has one
// writer at a time; the caller sees to that.
class RowSlots {
 public:
  static constexpr size_t kHeaderBytes = 16;

  static constexpr size_t SlotBytes(size_t row_bytes) {
    return kHeaderBytes + (row_bytes + 7) / 8 * 8;
  }

  // `words`: zeroed, of count * SlotBytes(row_bytes) bytes.
  RowSlots(uint64_t* words, size_t row_bytes)
      : words_(words),
        row_bytes_(row_bytes),
        slot_words_(SlotBytes(row_bytes) / 8) {}

  void PrefetchSlot(uint32_t slot) const {
    PrefetchBytes(At(slot), slot_words_ * 8);
  }
  void PrefetchKey(uint32_t slot) const { PrefetchBytes(At(slot)); }

  // Copies the row of `key` to `out` and counts its use. False: the slot has
  // another or is just written; what `out` has then is unspecified.
  bool Read(uint32_t slot, CacheKey key, std::byte* out) const {
    uint64_t* const words = At(slot);
    const uint64_t sequence = Atomic(words[0]).load(std::memory_order_acquire);
    const uint64_t key_word = Atomic(words[1]).load(std::memory_order_acquire);
    if ((sequence & 1) != 0 || !key.IsIn(key_word)) return false;
    CopyOut(words + 2, out);
    if (Atomic(words[0]).load(std::memory_order_relaxed) != sequence) {
      return false;
    }
    CountUse(words, key_word);
    return true;
  }

  // The key with its uses; see CacheKey.
  uint64_t KeyWord(uint32_t slot) const {
    return Atomic(At(slot)[1]).load(std::memory_order_relaxed);
  }
  // REQUIRES: by the slot's writer, who saw that it has one.
  void TakeUse(uint32_t slot) const {
    Atomic(At(slot)[1]).fetch_sub(1, std::memory_order_relaxed);
  }

  void Write(uint32_t slot, CacheKey key, const std::byte* row) const {
    uint64_t* const words = At(slot);
    const uint64_t sequence = Atomic(words[0]).load(std::memory_order_relaxed);
    Atomic(words[0]).store(sequence + 1, std::memory_order_relaxed);
    Atomic(words[1]).store(key.bits(), std::memory_order_release);
    CopyIn(row, words + 2);
    Atomic(words[0]).store(sequence + 2, std::memory_order_release);
  }

 private:
  static std::atomic_ref<uint64_t> Atomic(uint64_t& word) {
    return std::atomic_ref<uint64_t>(word);
  }
  uint64_t* At(uint32_t slot) const { return words_ + slot * slot_words_; }

  // A hit that finds the slot rewritten meanwhile, or another reader at it,
  // goes uncounted.
  static void CountUse(uint64_t* words, uint64_t key_word) {
    if (CacheKey::UsesIn(key_word) == CacheKey::kMaxUses) return;
    Atomic(words[1]).compare_exchange_strong(key_word, key_word + 1,
                                             std::memory_order_relaxed);
  }

  void CopyOut(uint64_t* from, std::byte* out) const {
    const size_t whole = row_bytes_ / 8;
#pragma GCC unroll 8
    for (size_t i = 0; i < whole; ++i) {
      const uint64_t word = Atomic(from[i]).load(std::memory_order_acquire);
      std::memcpy(out + 8 * i, &word, 8);
    }
    if (const size_t rest = row_bytes_ % 8; rest > 0) {
      const uint64_t word = Atomic(from[whole]).load(std::memory_order_acquire);
      std::memcpy(out + 8 * whole, &word, rest);
    }
  }

  void CopyIn(const std::byte* row, uint64_t* to) const {
    const size_t whole = row_bytes_ / 8;
#pragma GCC unroll 8
    for (size_t i = 0; i < whole; ++i) {
      uint64_t word;
      std::memcpy(&word, row + 8 * i, 8);
      Atomic(to[i]).store(word, std::memory_order_release);
    }
    if (const size_t rest = row_bytes_ % 8; rest > 0) {
      uint64_t word = 0;
      std::memcpy(&word, row + 8 * whole, rest);
      Atomic(to[whole]).store(word, std::memory_order_release);
    }
  }

  uint64_t* words_;
  size_t row_bytes_;
  size_t slot_words_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_ROW_SLOTS_H_

#ifndef ENGRAM_CORE_CACHE_GHOST_TABLE_H_
#define ENGRAM_CORE_CACHE_GHOST_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace engram {

// Fingerprints of rows that were here lately. Buckets of one cache line, each a
// queue of its own: the eldest of sixteen leaves it. Together they remember
// about the last 16 * buckets rows.
//
// A wrong fingerprint admits a row too early, no more. Not synchronised.
class GhostTable {
 public:
  static constexpr uint32_t kEntries = 16;
  static constexpr size_t kBucketBytes = 64;

  // `fingerprints`: zeroed, aligned to a line.
  explicit GhostTable(uint32_t* fingerprints) : fingerprints_(fingerprints) {}

  void Add(uint64_t bucket, uint32_t fingerprint) {
    uint32_t* const entries = At(bucket);
    std::copy_backward(entries, entries + kEntries - 1, entries + kEntries);
    entries[0] = fingerprint;
  }

  // Whether it was there; it is no more.
  bool Take(uint64_t bucket, uint32_t fingerprint) {
    uint32_t* const entries = At(bucket);
    uint32_t* const found = std::find(entries, entries + kEntries, fingerprint);
    if (found == entries + kEntries || fingerprint == 0) return false;
    *found = 0;
    return true;
  }

 private:
  uint32_t* At(uint64_t bucket) const {
    return fingerprints_ + bucket * kEntries;
  }

  uint32_t* fingerprints_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_GHOST_TABLE_H_

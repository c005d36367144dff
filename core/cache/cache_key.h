#ifndef ENGRAM_CORE_CACHE_CACHE_KEY_H_
#define ENGRAM_CORE_CACHE_CACHE_KEY_H_

#include <cstdint>

#include "core/base/ids.h"

namespace engram {

// One layer of one table version, within one cache: from 1, never used again.
enum class TableKey : uint32_t {};

// A row as its slot names it, in full, with room for two bits:
//
//   63        34 33         2 1  0
//   [ TableKey ] [   RowId  ] [uses]
//
// 0: no row.
class CacheKey {
 public:
  static constexpr uint32_t kTableBits = 30;
  static constexpr uint64_t kMaxUses = 3;

  CacheKey(TableKey table, RowId row)
      : bits_(uint64_t{static_cast<uint32_t>(table)} << 34 | uint64_t{row}
                                                                 << 2) {}
  // From a slot's word.
  explicit CacheKey(uint64_t word) : bits_(word & ~kMaxUses) {}

  uint64_t bits() const { return bits_; }
  bool IsIn(uint64_t word) const { return bits_ == (word & ~kMaxUses); }
  static uint64_t UsesIn(uint64_t word) { return word & kMaxUses; }

  // Well mixed in all bits. `seed`: row ids follow from what users write, who
  // could otherwise choose rows that all meet.
  uint64_t Hash(uint64_t seed) const {
    uint64_t hash = bits_ ^ seed;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
    return hash ^ hash >> 32;
  }

 private:
  uint64_t bits_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_CACHE_KEY_H_

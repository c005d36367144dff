#ifndef ENGRAM_COMPUTE_HASH_COLUMN_KERNEL_H_
#define ENGRAM_COMPUTE_HASH_COLUMN_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/model/layout.h"

// The inner loop of the hash, for the vector width of this CPU.

namespace engram {

// Constants of up to kColumns columns of one n-gram size, as hash_core.h
// defines them, in the lanes that the widest vector works in.
struct alignas(64) ColumnGroup {
  static constexpr size_t kColumns = 8;

  uint64_t magics_low[kColumns];  // halves of the 64-bit magic
  uint64_t magics_high[kColumns];
  uint64_t shifts[kColumns];
  uint64_t primes[kColumns];
  uint64_t offsets[kColumns];
};

// Constants of one layer.
struct ColumnConstants {
  ColumnConstants(const LayerLayout& layout, size_t heads);

  size_t heads = 0;
  std::vector<uint64_t> multipliers;  // [max_ngram_size], one a lookback
  // [n-gram sizes, heads / kColumns rounded up]. What fills up
  // the last group of a size is 0.
  std::vector<ColumnGroup> groups;
};

// Row ids of `count` positions, [count, n-gram sizes, heads]. ids[i] is the
// compressed id of position i; max_ngram_size - 1 older ones stand before
// ids[0].
void HashPositions(const ColumnConstants& constants, const uint32_t* ids,
                   size_t count, RowId* out);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_COLUMN_KERNEL_H_

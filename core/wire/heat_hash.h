#ifndef ENGRAM_CORE_WIRE_HEAT_HASH_H_
#define ENGRAM_CORE_WIRE_HEAT_HASH_H_

#include <cstdint>

#include "core/base/ids.h"

namespace engram {

// A row of any layer as one number.
constexpr uint64_t HeatKey(LayerId layer, RowId row) {
  return uint64_t{ToInt(layer)} << 32 | row;
}
constexpr LayerId LayerOfHeatKey(uint64_t key) {
  return LayerId{static_cast<uint32_t>(key >> 32)};
}
constexpr RowId RowOfHeatKey(uint64_t key) { return static_cast<RowId>(key); }

// By which rows are sampled, as RecordHeatResponse in table.proto has it: the
// output of SplitMix64. Part of the wire: it never changes.
constexpr uint64_t HeatHash(uint64_t key) {
  uint64_t z = key + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_HEAT_HASH_H_

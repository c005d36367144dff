#ifndef ENGRAM_ENGRAM_CLIENT_PLAN_SLOT_SORT_H_
#define ENGRAM_ENGRAM_CLIENT_PLAN_SLOT_SORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// Numbers of scratch that SortSlots needs for `count` ids.
inline constexpr size_t SlotSortScratch(size_t count) { return 2 * count; }

// Writes `ids` ascending to `rows`, and to `slots` where each stood in `ids`;
// equal ids keep their order. REQUIRES: fewer than 2^32 ids; nothing overlaps.
void SortSlots(absl::Span<const RowId> ids, uint64_t* scratch, RowId* rows,
               uint32_t* slots);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_PLAN_SLOT_SORT_H_

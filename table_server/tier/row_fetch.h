#ifndef ENGRAM_TABLE_SERVER_TIER_ROW_FETCH_H_
#define ENGRAM_TABLE_SERVER_TIER_ROW_FETCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// Rows of a gather that have to be waited for: row_ids[i] is wanted in the i-th
// slot of `out`, for each i in `wanted`; other slots are not touched. Refers to
// memory of whoever asks.
struct RowFetch {
  size_t layer_index = 0;           // of the manifest
  absl::Span<const RowId> row_ids;  // table-wide
  std::vector<uint32_t> wanted;     // ascending
  absl::Span<std::byte> out;        // row_ids.size() slots of row_bytes
  absl::Time deadline = absl::InfiniteFuture();
  // Every row of a partition in turn: that they are read now says nothing about
  // whether they will be again.
  bool is_scan = false;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_ROW_FETCH_H_

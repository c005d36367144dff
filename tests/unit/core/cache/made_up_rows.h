#ifndef ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_
#define ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/cache/cache_key.h"

namespace engram {

// A row that says in each 4 bytes which it is.
inline void MakeUpRow(TableKey table, RowId row, absl::Span<std::byte> out) {
  for (size_t at = 0; at < out.size(); at += 4) {
    const uint32_t word = row * 0x9e3779b1u + static_cast<uint32_t>(table) +
                          static_cast<uint32_t>(at);
    std::memcpy(out.data() + at, &word, std::min<size_t>(4, out.size() - at));
  }
}

inline std::vector<std::byte> MadeUpRows(TableKey table,
                                         absl::Span<const RowId> rows,
                                         size_t row_bytes) {
  std::vector<std::byte> packed(rows.size() * row_bytes);
  for (size_t i = 0; i < rows.size(); ++i) {
    MakeUpRow(table, rows[i],
              absl::MakeSpan(packed).subspan(i * row_bytes, row_bytes));
  }
  return packed;
}

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_

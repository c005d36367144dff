#ifndef ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_
#define ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
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

// Row r in proportion to (r + 1)^-exponent.
class ZipfRows {
 public:
  ZipfRows(double exponent, uint32_t rows) : sums_(rows) {
    double sum = 0;
    for (uint32_t i = 0; i < rows; ++i) {
      sums_[i] = sum += std::pow(i + 1.0, -exponent);
    }
  }
  RowId Draw(std::mt19937_64& random) const {
    const double at =
        std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto found = std::lower_bound(sums_.begin(), sums_.end(), at);
    return static_cast<RowId>(std::min<ptrdiff_t>(
        found - sums_.begin(), static_cast<ptrdiff_t>(sums_.size()) - 1));
  }

 private:
  std::vector<double> sums_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_CORE_CACHE_MADE_UP_ROWS_H_

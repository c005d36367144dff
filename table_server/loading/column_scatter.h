#ifndef ENGRAM_TABLE_SERVER_LOADING_COLUMN_SCATTER_H_
#define ENGRAM_TABLE_SERVER_LOADING_COLUMN_SCATTER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "core/base/check.h"

namespace engram {

// Puts the bytes of one column (codes or scales) of consecutive rows into
// packed rows, in pieces cut anywhere.
class ColumnScatter {
 public:
  // The column is bytes [offset, offset + width) of each row of `stride`.
  ColumnScatter(absl::Span<std::byte> rows, size_t stride, size_t offset,
                size_t width)
      : rows_(rows), stride_(stride), offset_(offset), width_(width) {}

  // REQUIRES: `at`, counted in the column, and what follows are within it.
  void Put(uint64_t at, absl::Span<const std::byte> bytes) {
    ENGRAM_CHECK(at + bytes.size() <= rows_.size() / stride_ * width_);
    size_t within = at % width_;
    std::byte* row = rows_.data() + at / width_ * stride_ + offset_;
    while (!bytes.empty()) {
      const size_t size = std::min(width_ - within, bytes.size());
      std::memcpy(row + within, bytes.data(), size);
      bytes.remove_prefix(size);
      within = 0;
      row += stride_;
    }
  }

 private:
  const absl::Span<std::byte> rows_;
  const size_t stride_;
  const size_t offset_;
  const size_t width_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_COLUMN_SCATTER_H_

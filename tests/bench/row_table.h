#ifndef ENGRAM_TESTS_BENCH_ROW_TABLE_H_
#define ENGRAM_TESTS_BENCH_ROW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/page_buffer.h"

namespace engram::bench {

// All rows of a checkpoint, packed, one layer after another, in one buffer of
// huge pages: what the plain peers serve from and what every reply is compared
// with. A row's index counts over all layers.
//
// Immutable. Thread safety: all methods may be called concurrently.
class RowTable {
 public:
  struct Layer {
    LayerId layer_id;
    uint32_t first_index = 0;  // of its row 0
    uint32_t row_count = 0;
  };

  // INVALID_ARGUMENT: more than 2^32 - 1 rows. Else the checkpoint's errors.
  static absl::StatusOr<RowTable> Load(const std::string& checkpoint_dir);

  absl::Span<const Layer> layers() const { return layers_; }
  uint32_t row_count() const { return row_count_; }
  size_t row_bytes() const { return row_bytes_; }
  const std::byte* row(uint32_t index) const {
    return rows_.bytes().data() + size_t{index} * row_bytes_;
  }
  size_t huge_page_bytes() const { return rows_.HugeBytes(); }

  // Row indices[i] to slot i of `out`, with software prefetch.
  // REQUIRES: indices below row_count(), out.size() as large as they need.
  void Gather(absl::Span<const uint32_t> indices,
              absl::Span<std::byte> out) const;

  // DATA_LOSS naming the first slot of `rows` that is not its row, byte for
  // byte.
  absl::Status Verify(absl::Span<const uint32_t> indices,
                      absl::Span<const std::byte> rows) const;

 private:
  std::vector<Layer> layers_;
  uint32_t row_count_ = 0;
  size_t row_bytes_ = 0;
  PageBuffer rows_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_ROW_TABLE_H_

#ifndef ENGRAM_TESTS_BENCH_BATCHES_H_
#define ENGRAM_TESTS_BENCH_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "tests/bench/row_table.h"

namespace engram::bench {

// The rows of one gather, both as indices over all layers, for peers that know
// one table only, and by layer. Spans are the pool's.
struct Batch {
  struct Part {
    LayerId layer;
    absl::Span<const RowId> row_ids;
  };
  absl::Span<const uint32_t> indices;
  std::vector<Part> parts;  // in the order of `indices`
};

// Batches drawn before anything is timed, enough of them that their rows do
// not stay in a cache. A batch of up to 24 rows, one token's of one layer, is
// of one layer, turn by turn; a larger one takes the same from each.
//
// Immutable. Thread safety: all methods may be called concurrently.
class BatchPool {
 public:
  static constexpr absl::string_view kUniform = "uniform";
  static constexpr absl::string_view kZipf = "zipf_1.0";

  // A function of its arguments alone. INVALID_ARGUMENT: another distribution,
  // or no rows.
  static absl::StatusOr<BatchPool> Draw(const RowTable& table,
                                        absl::string_view distribution,
                                        size_t rows_per_batch);

  const Batch& batch(size_t index) const {
    return batches_[index % batches_.size()];
  }
  size_t rows_per_batch() const { return rows_per_batch_; }

 private:
  size_t rows_per_batch_ = 0;
  std::vector<uint32_t> indices_;
  std::vector<RowId> row_ids_;
  std::vector<Batch> batches_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_BATCHES_H_

#ifndef ENGRAM_TESTS_BENCH_SYNTHETIC_TABLE_H_
#define ENGRAM_TESTS_BENCH_SYNTHETIC_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"

namespace engram::bench {

// The first partitions of the first layer of V4.1, with made-up rows that
// anybody can compute again: every contestant stores the same bytes, and what
// it gives is compared with them.
//
// Thread safety: all methods may be called concurrently.
class SyntheticTable {
 public:
  // As many whole partitions as fit into `bytes`, at least one, at most all.
  static absl::StatusOr<SyntheticTable> Create(uint64_t bytes);

  const Manifest& manifest() const { return manifest_; }
  uint32_t partitions() const { return partitions_; }
  uint64_t rows_per_partition() const { return manifest_.partition_rows(); }
  uint64_t row_count() const { return partitions_ * rows_per_partition(); }
  size_t row_bytes() const { return manifest_.row_format().row_bytes(); }
  uint64_t partition_bytes() const {
    return rows_per_partition() * row_bytes();
  }
  uint64_t bytes() const { return partitions_ * partition_bytes(); }
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }

  // REQUIRES: packed.size() == partition_bytes().
  void Fill(uint32_t partition, absl::Span<std::byte> packed) const;
  // DATA_LOSS names the first row that is not as it should be. Looks at every
  // `step`-th of them.
  absl::Status Check(absl::Span<const RowId> row_ids,
                     absl::Span<const std::byte> rows, size_t step) const;

  // fn(partition) for all of them on so many threads; the first error.
  absl::Status ForPartitions(
      size_t threads, absl::FunctionRef<absl::Status(uint32_t)> fn) const;

 private:
  SyntheticTable(Manifest manifest, uint32_t partitions)
      : manifest_(std::move(manifest)), partitions_(partitions) {}
  void RowTo(RowId row, absl::Span<std::byte> out) const;

  Manifest manifest_;
  uint32_t partitions_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_SYNTHETIC_TABLE_H_

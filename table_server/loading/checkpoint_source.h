#ifndef ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/loading/direct_column.h"
#include "table_server/loading/partition_source.h"

namespace engram {

// Packs a partition's rows out of the files of a checkpoint, past the page
// cache unless most of them are there. DATA_LOSS when a file was cut while it
// was read.
class CheckpointSource final : public PartitionSource {
 public:
  // With the slack of direct reads a huge page, and it stays in a core's cache
  // until it is packed and summed.
  static constexpr size_t kPieceBytes =
      (size_t{2} << 20) - 2 * DirectColumn::kSlackBytes;

  // Both must outlive the source. REQUIRES: the manifest is the checkpoint's.
  // `is_cached`: whether a tensor is to be read as it is mapped. Rows are read
  // in pieces of `piece_bytes`, at least one.
  CheckpointSource(const Checkpoint& checkpoint, const Manifest& manifest,
                   absl::FunctionRef<bool(const TensorView&)> is_cached =
                       DirectColumn::IsCached,
                   size_t piece_bytes = kPieceBytes);

  std::string description() const override { return checkpoint_.dir(); }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;

 private:
  struct Columns {
    std::unique_ptr<DirectColumn> codes;
    std::unique_ptr<DirectColumn> scales;
  };

  // Rows from `row` on. REQUIRES: `buffer` as for both columns.
  absl::Status PackDirectly(const Columns& columns, uint64_t row,
                            absl::Span<std::byte> buffer,
                            absl::Span<std::byte> out) const;

  const Checkpoint& checkpoint_;
  const Manifest& manifest_;
  const size_t piece_bytes_;
  std::vector<Columns> columns_;  // by layers; null: only mapped
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_CHECKPOINT_SOURCE_H_

#include "table_server/store/block_fetch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "table_server/store/damaged_partition.h"

namespace engram {

BlockFetch::BlockFetch(Table table, RowFetch fetch)
    : table_(std::move(table)),
      fetch_(std::move(fetch)),
      row_bytes_(table_.manifest.row_format().row_bytes()) {
  ENGRAM_CHECK(fetch_.layer_index < table_.manifest.layers().size());
  ENGRAM_CHECK(fetch_.out.size() == fetch_.row_ids.size() * row_bytes_);
}

absl::StatusOr<size_t> BlockFetch::Plan() {
  std::vector<uint64_t> by_row;  // row, then slot
  by_row.reserve(fetch_.wanted.size());
  for (const uint32_t slot : fetch_.wanted) {
    by_row.push_back(uint64_t{fetch_.row_ids[slot]} << 32 | slot);
  }
  std::sort(by_row.begin(), by_row.end());
  slots_.reserve(by_row.size());
  const uint64_t partition_rows = table_.manifest.partition_rows();
  for (const uint64_t row_and_slot : by_row) {
    const uint64_t row = row_and_slot >> 32;
    const PartitionId partition{static_cast<uint32_t>(row / partition_rows)};
    const auto block =
        static_cast<uint32_t>(row % partition_rows / table_.rows_per_block);
    if (reads_.empty() || reads_.back().partition != partition ||
        reads_.back().block != block) {
      reads_.push_back(
          {partition, block, static_cast<uint32_t>(slots_.size()), 0});
    }
    ++reads_.back().count;
    slots_.push_back(static_cast<uint32_t>(row_and_slot));
  }
  for (const BlockRead& read : reads_) {
    ENGRAM_RETURN_IF_ERROR(CheckIsThere(read));
  }
  return reads_.size();
}

absl::Status BlockFetch::CheckIsThere(const BlockRead& read) const {
  const RowId last_row = fetch_.row_ids[slots_[read.first + read.count - 1]];
  const ManifestLayer& layer = table_.manifest.layers()[fetch_.layer_index];
  if (last_row >= layer.row_count) {
    return absl::NotFoundError(absl::StrCat("row ", last_row, " of layer ",
                                            ToInt(layer.layer_id),
                                            ", which has ", layer.row_count));
  }
  if (!table_.index.Has(fetch_.layer_index, read.partition)) {
    return WithDamagedPartition(
        absl::NotFoundError(absl::StrCat("partition ", ToInt(read.partition),
                                         " of layer ", ToInt(layer.layer_id),
                                         " is not in ", table_.store)),
        {layer.layer_id, read.partition});
  }
  return absl::OkStatus();
}

absl::Status BlockFetch::Read(size_t i) {
  const LayerId layer = table_.manifest.layers()[fetch_.layer_index].layer_id;
  const PartitionRef ref{layer, reads_[i].partition};
  absl::Status status = ReadBlock(ref, reads_[i]);
  if (!absl::IsDataLoss(status)) return status;
  return WithDamagedPartition(std::move(status), ref);
}

void BlockFetch::CopyRows(const BlockRead& read,
                          absl::Span<const std::byte> block) {
  const uint64_t partition_rows = table_.manifest.partition_rows();
  for (uint32_t i = read.first; i < read.first + read.count; ++i) {
    const uint32_t slot = slots_[i];
    const uint64_t row_of_block =
        fetch_.row_ids[slot] % partition_rows % table_.rows_per_block;
    std::memcpy(fetch_.out.data() + slot * row_bytes_,
                block.data() + row_of_block * row_bytes_, row_bytes_);
  }
}

}  // namespace engram

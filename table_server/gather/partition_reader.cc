#include "table_server/gather/partition_reader.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/request_errors.h"

namespace engram {

PartitionReader::PartitionReader(const Manifest& manifest,
                                 const PartitionSet& partitions,
                                 const RowTier& tier, std::string server_name)
    : manifest_(manifest),
      partitions_(partitions),
      tier_(tier),
      server_name_(std::move(server_name)),
      row_bytes_(manifest.row_format().row_bytes()) {
  ENGRAM_CHECK(tier.row_bytes() == row_bytes_);
}

absl::StatusOr<RowRange> PartitionReader::Check(absl::string_view version,
                                                const PartitionRef& ref,
                                                uint64_t offset_bytes) const {
  ENGRAM_RETURN_IF_ERROR(CheckVersion(version, manifest_));
  const absl::StatusOr<size_t> index = manifest_.IndexOf(ref.layer);
  if (!index.ok()) return UnknownLayer(ref.layer);
  const uint32_t partition = ToInt(ref.partition);
  if (partition >= manifest_.partition_count(*index)) {
    return absl::OutOfRangeError(
        absl::StrCat("partition ", partition, " of layer ", ToInt(ref.layer),
                     ", which has ", manifest_.partition_count(*index)));
  }
  const uint64_t rows = manifest_.RowsIn(*index, ref.partition);
  if (offset_bytes > rows * row_bytes_) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset_bytes,
                                              " in a partition of ",
                                              rows * row_bytes_, " bytes"));
  }
  if (offset_bytes % row_bytes_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset ", offset_bytes, " is within a row; rows have ",
                     row_bytes_, " bytes"));
  }
  ENGRAM_RETURN_IF_ERROR(CheckHere(*index, ref));
  const uint64_t first = partition * manifest_.partition_rows();
  return RowRange{*index, ref, first + offset_bytes / row_bytes_, first + rows};
}

absl::Status PartitionReader::Copy(RowRange& range,
                                   absl::Span<std::byte> out) const {
  const uint64_t count = out.size() / row_bytes_;
  ENGRAM_CHECK(out.size() % row_bytes_ == 0 && count <= range.size());
  std::vector<RowId> row_ids(count);
  std::iota(row_ids.begin(), row_ids.end(), static_cast<RowId>(range.next_row));
  const LeaseEpochs::Lease lease = partitions_.TakeLease();
  ENGRAM_RETURN_IF_ERROR(CheckHere(range.layer_index, range.ref));
  ENGRAM_RETURN_IF_ERROR(tier_.CopyRows(range.layer_index, row_ids, out));
  range.next_row += count;
  return absl::OkStatus();
}

absl::Status PartitionReader::CheckHere(size_t layer_index,
                                        const PartitionRef& ref) const {
  if (partitions_.Holds(layer_index, ToInt(ref.partition))) {
    return absl::OkStatus();
  }
  return PartitionNotHereError(
      server_name_, {ref},
      {{ref.layer, manifest_.partition_count(layer_index)}});
}

}  // namespace engram

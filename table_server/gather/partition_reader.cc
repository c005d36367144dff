#include "table_server/gather/partition_reader.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/fetch_error.h"
#include "table_server/gather/request_errors.h"

namespace engram {

PartitionReader::PartitionReader(const Manifest& manifest,
                                 const PartitionSet& partitions,
                                 const RowTier& tier, Options options)
    : manifest_(manifest),
      partitions_(partitions),
      tier_(tier),
      options_(std::move(options)),
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

absl::StatusOr<MissedRange> PartitionReader::Copy(
    RowRange& range, absl::Span<std::byte> out) const {
  const uint64_t count = out.size() / row_bytes_;
  ENGRAM_CHECK(out.size() % row_bytes_ == 0 && count <= range.size());
  MissedRange missed;
  missed.row_ids.resize(count);
  std::iota(missed.row_ids.begin(), missed.row_ids.end(),
            static_cast<RowId>(range.next_row));
  missed.fetch = {.layer_index = range.layer_index,
                  .row_ids = missed.row_ids,
                  .out = out,
                  .is_scan = true};
  missed.lease = partitions_.TakeLease();
  ENGRAM_RETURN_IF_ERROR(CheckHere(range.layer_index, range.ref));
  ENGRAM_RETURN_IF_ERROR(tier_.ScanRows(range.layer_index, missed.row_ids, out,
                                        missed.fetch.wanted));
  range.next_row += count;
  return missed;
}

void PartitionReader::Fetch(MissedRange missed, absl::Time deadline,
                            RowTier::OnRows done) const {
  ENGRAM_CHECK(!missed.empty());
  FetchedRows rows = NameRows(missed.fetch, manifest_);
  RowFetch fetch = std::move(missed.fetch);
  fetch.deadline = deadline;
  tier_.Fetch(std::move(fetch),
              [this, kept = std::move(missed), rows = std::move(rows),
               done = std::move(done)](absl::Status status) mutable {
                if (!status.ok()) {
                  status = FetchError(status, rows, options_.server_name,
                                      options_.retry_after);
                }
                kept.lease.End();
                done(std::move(status));
              });
}

absl::Status PartitionReader::CheckHere(size_t layer_index,
                                        const PartitionRef& ref) const {
  if (partitions_.Holds(layer_index, ToInt(ref.partition))) {
    return absl::OkStatus();
  }
  return PartitionNotHereError(
      options_.server_name, {ref},
      {{ref.layer, manifest_.partition_count(layer_index)}});
}

}  // namespace engram

#include "table_server/gather/gatherer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/request_errors.h"

namespace engram {
namespace {

// Rows copied between two looks at the guard: some 100 us of work.
constexpr uint64_t kRowsPerCheck = 4096;

constexpr size_t kMaxLayers = 1024;

absl::Status TooLarge(uint64_t rows, uint64_t limit) {
  return MakeError(
      ErrorReason::kTooLarge,
      absl::StrCat("a gather of ", rows, " rows, the limit is ", limit),
      {{"what", "rows"},
       {"value", absl::StrCat(rows)},
       {"limit", absl::StrCat(limit)}});
}

absl::Status TooManyLayers(size_t layers) {
  return MakeError(ErrorReason::kTooLarge,
                   absl::StrCat("a gather of ", layers,
                                " layer entries, the limit is ", kMaxLayers),
                   {{"what", "layers"},
                    {"value", absl::StrCat(layers)},
                    {"limit", absl::StrCat(kMaxLayers)}});
}

absl::Status RowOutOfRange(LayerId layer, RowId row, uint64_t rows) {
  return MakeError(ErrorReason::kRowOutOfRange,
                   absl::StrCat("row ", row, " of layer ", ToInt(layer),
                                ", whose table has ", rows, " rows"),
                   {{"layer", absl::StrCat(ToInt(layer))},
                    {"row", absl::StrCat(row)},
                    {"rows", absl::StrCat(rows)}});
}

}  // namespace

absl::Status CheckLayerCount(size_t layers) {
  return layers > kMaxLayers ? TooManyLayers(layers) : absl::OkStatus();
}

Gatherer::Gatherer(const Manifest& manifest, const PartitionSet& partitions,
                   const RowTier& tier, Options options)
    : manifest_(manifest),
      partitions_(partitions),
      tier_(tier),
      options_(std::move(options)),
      row_bytes_(manifest.row_format().row_bytes()),
      partition_shift_(std::countr_zero(manifest.partition_rows())) {
  ENGRAM_CHECK(tier.row_bytes() == row_bytes_);
}

absl::StatusOr<CheckedGather> Gatherer::Check(
    absl::string_view version, absl::Span<const LayerRowIds> layers) const {
  ENGRAM_RETURN_IF_ERROR(CheckVersion(version, manifest_));
  ENGRAM_RETURN_IF_ERROR(CheckLayerCount(layers.size()));
  CheckedGather gather;
  gather.layers.reserve(layers.size());
  for (const LayerRowIds& layer : layers) {
    gather.row_count += layer.row_ids.size();
  }
  if (gather.row_count > options_.max_rows) {
    return TooLarge(gather.row_count, options_.max_rows);
  }
  for (const LayerRowIds& layer : layers) {
    const absl::StatusOr<size_t> index = manifest_.IndexOf(layer.layer);
    if (!index.ok()) return UnknownLayer(layer.layer);
    gather.layers.push_back({*index, layer.row_ids});
  }
  // Before the first look: what is seen to be held then stays.
  gather.lease = partitions_.TakeLease();
  ENGRAM_RETURN_IF_ERROR(CheckRows(gather.layers));
  return gather;
}

absl::Status Gatherer::CheckRows(
    absl::Span<const CheckedGather::Layer> layers) const {
  bool all_here = true;
  for (const CheckedGather::Layer& layer : layers) {
    const ManifestLayer& table = manifest_.layers()[layer.layer_index];
    for (const RowId row : layer.row_ids) {
      if (row >= table.row_count) {
        return RowOutOfRange(table.layer_id, row, table.row_count);
      }
      all_here &= partitions_.Holds(layer.layer_index, PartitionOf(row));
    }
  }
  return all_here ? absl::OkStatus() : NotHere(layers);
}

absl::Status Gatherer::NotHere(
    absl::Span<const CheckedGather::Layer> layers) const {
  std::vector<PartitionRef> missing;
  for (const CheckedGather::Layer& layer : layers) {
    const LayerId id = manifest_.layers()[layer.layer_index].layer_id;
    for (const RowId row : layer.row_ids) {
      const uint32_t partition = PartitionOf(row);
      if (partitions_.Holds(layer.layer_index, partition)) continue;
      missing.push_back({id, PartitionId{partition}});
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  // A partition may have become ready since the first look. If none is missing
  // now, each was held at some moment under the lease, which keeps its bytes.
  if (missing.empty()) return absl::OkStatus();
  return PartitionNotHereError(options_.server_name, missing,
                               manifest_.PartitionCounts());
}

absl::Status Gatherer::Copy(const CheckedGather& gather, uint64_t first_row,
                            absl::Span<std::byte> out,
                            const CallGuard& guard) const {
  uint64_t skip = first_row;
  ENGRAM_RETURN_IF_ERROR(guard.Check());
  for (const CheckedGather::Layer& layer : gather.layers) {
    if (skip >= layer.row_ids.size()) {
      skip -= layer.row_ids.size();
      continue;
    }
    absl::Span<const RowId> rows = layer.row_ids.subspan(skip);
    skip = 0;
    rows = rows.subspan(0, std::min(rows.size(), out.size() / row_bytes_));
    while (!rows.empty()) {
      const size_t count = std::min<size_t>(rows.size(), kRowsPerCheck);
      ENGRAM_RETURN_IF_ERROR(
          tier_.CopyRows(layer.layer_index, rows.subspan(0, count),
                         out.subspan(0, count * row_bytes_)));
      rows.remove_prefix(count);
      out.remove_prefix(count * row_bytes_);
      ENGRAM_RETURN_IF_ERROR(guard.Check());
    }
    if (out.empty()) break;
  }
  ENGRAM_CHECK(out.empty());
  return absl::OkStatus();
}

}  // namespace engram

#include "table_server/gather/gatherer.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/fetch_error.h"
#include "table_server/gather/fetch_join.h"
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
                            absl::Span<std::byte> out, const CallGuard& guard,
                            std::vector<RowFetch>& missed) const {
  uint64_t skip = first_row;
  ENGRAM_RETURN_IF_ERROR(guard.Check());
  for (const CheckedGather::Layer& layer : gather.layers) {
    if (skip >= layer.row_ids.size()) {
      skip -= layer.row_ids.size();
      continue;
    }
    const absl::Span<const RowId> rest = layer.row_ids.subspan(skip);
    skip = 0;
    const size_t count = std::min(rest.size(), out.size() / row_bytes_);
    RowFetch fetch{.layer_index = layer.layer_index,
                   .row_ids = rest.subspan(0, count),
                   .out = out.subspan(0, count * row_bytes_)};
    if (options_.heat != nullptr) {
      options_.heat->Record(layer.layer_index, fetch.row_ids);
    }
    ENGRAM_RETURN_IF_ERROR(CopyLayer(fetch, guard));
    if (!fetch.wanted.empty()) missed.push_back(std::move(fetch));
    out.remove_prefix(count * row_bytes_);
    if (out.empty()) break;
  }
  ENGRAM_CHECK(out.empty());
  return absl::OkStatus();
}

// What is missed becomes wanted.
absl::Status Gatherer::CopyLayer(RowFetch& fetch,
                                 const CallGuard& guard) const {
  const size_t row_count = fetch.row_ids.size();
  for (size_t first = 0; first < row_count; first += kRowsPerCheck) {
    const size_t count = std::min<size_t>(row_count - first, kRowsPerCheck);
    const size_t missed_before = fetch.wanted.size();
    ENGRAM_RETURN_IF_ERROR(tier_.CopyRows(
        fetch.layer_index, fetch.row_ids.subspan(first, count),
        fetch.out.subspan(first * row_bytes_, count * row_bytes_),
        fetch.wanted));
    for (size_t i = missed_before; first > 0 && i < fetch.wanted.size(); ++i) {
      fetch.wanted[i] += static_cast<uint32_t>(first);
    }
    ENGRAM_RETURN_IF_ERROR(guard.Check());
  }
  return absl::OkStatus();
}

void Gatherer::Fetch(std::vector<RowFetch> missed, absl::Time deadline,
                     RowTier::OnRows done) const {
  ENGRAM_CHECK(!missed.empty());
  const auto join = std::make_shared<FetchJoin>(missed.size(), std::move(done));
  for (RowFetch& fetch : missed) {
    fetch.deadline = deadline;
    FetchedRows rows = NameRows(fetch, manifest_);
    tier_.Fetch(std::move(fetch),
                [this, join, rows = std::move(rows)](absl::Status status) {
                  if (!status.ok()) {
                    status = FetchError(status, rows, options_.server_name,
                                        options_.retry_after);
                  }
                  join->Ended(std::move(status));
                });
  }
}

}  // namespace engram

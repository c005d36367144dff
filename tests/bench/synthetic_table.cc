#include "tests/bench/synthetic_table.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/synthetic_rows.h"

namespace engram::bench {
namespace {

constexpr uint64_t kSeed = 1;
constexpr uint64_t kPartitionRows = 65536;

absl::StatusOr<Manifest> V41Manifest() {
  ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config, PresetConfig("v41"));
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(config));
  std::vector<ManifestLayer> layers;
  for (const LayerLayout& layer : layout.layers()) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  return Manifest::Create(config, {.width = config.head_dim}, kPartitionRows,
                          std::move(layers), absl::StrCat("synthetic:", kSeed));
}

}  // namespace

absl::StatusOr<SyntheticTable> SyntheticTable::Create(uint64_t bytes) {
  ENGRAM_ASSIGN_OR_RETURN(Manifest manifest, V41Manifest());
  const uint64_t partition_bytes =
      kPartitionRows * manifest.row_format().row_bytes();
  // Without the last one, which has fewer rows.
  const uint32_t most = manifest.partition_count(0) - 1;
  const auto partitions = static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / partition_bytes, 1, most));
  return SyntheticTable(std::move(manifest), partitions);
}

void SyntheticTable::RowTo(RowId row, absl::Span<std::byte> out) const {
  SyntheticRow(kSeed, manifest_.layers()[0].layer_id, row,
               manifest_.row_format(), out);
}

void SyntheticTable::Fill(uint32_t partition,
                          absl::Span<std::byte> packed) const {
  ENGRAM_CHECK(packed.size() == partition_bytes());
  const uint64_t first = partition * rows_per_partition();
  for (uint64_t i = 0; i < rows_per_partition(); ++i) {
    RowTo(static_cast<RowId>(first + i),
          packed.subspan(i * row_bytes(), row_bytes()));
  }
}

absl::Status SyntheticTable::Check(absl::Span<const RowId> row_ids,
                                   absl::Span<const std::byte> rows,
                                   size_t step) const {
  std::vector<std::byte> wanted(row_bytes());
  for (size_t i = 0; i < row_ids.size(); i += step) {
    RowTo(row_ids[i], absl::MakeSpan(wanted));
    if (std::memcmp(wanted.data(), rows.data() + i * row_bytes(),
                    row_bytes()) != 0) {
      return absl::DataLossError(
          absl::StrCat("row ", row_ids[i], " is not what was stored"));
    }
  }
  return absl::OkStatus();
}

absl::Status SyntheticTable::ForPartitions(
    size_t threads, absl::FunctionRef<absl::Status(uint32_t)> fn) const {
  std::atomic<uint32_t> next{0};
  std::vector<absl::Status> statuses(threads);
  std::vector<std::thread> running;
  for (absl::Status& status : statuses) {
    running.emplace_back([&] {
      while (status.ok()) {
        const uint32_t partition = next.fetch_add(1);
        if (partition >= partitions_) return;
        status = fn(partition);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& status : statuses) ENGRAM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace engram::bench

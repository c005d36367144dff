#include "table_server/loading/checkpoint_source.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/thread_scratch.h"
#include "table_server/loading/column_scatter.h"

namespace engram {

CheckpointSource::CheckpointSource(
    const Checkpoint& checkpoint, const Manifest& manifest,
    absl::FunctionRef<bool(const TensorView&)> is_cached, size_t piece_bytes)
    : checkpoint_(checkpoint), manifest_(manifest), piece_bytes_(piece_bytes) {
  for (const LayerTensors& layer : checkpoint.layers()) {
    Columns columns;
    if (!is_cached(layer.embed_weight)) {
      columns.scales =
          DirectColumn::Open(layer.embed_scale, StoreFiles::Disk());
      columns.codes =
          columns.scales == nullptr
              ? nullptr
              : DirectColumn::Open(layer.embed_weight, StoreFiles::Disk());
    }
    columns_.push_back(std::move(columns));
  }
}

absl::Status CheckpointSource::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const RowFormat& format = manifest_.row_format();
  const Columns& columns = columns_[layer_index];
  const size_t rows_per_piece =
      std::max<size_t>(1, piece_bytes_ / format.row_bytes());
  ENGRAM_ASSIGN_OR_RETURN(
      ThreadScratch buffer,
      ThreadScratch::Take(rows_per_piece * format.row_bytes() +
                          2 * DirectColumn::kSlackBytes));
  uint64_t row = ToInt(ref.partition) * manifest_.partition_rows();
  while (!out.empty()) {
    const absl::Span<std::byte> piece =
        out.subspan(0, rows_per_piece * format.row_bytes());
    const size_t rows = piece.size() / format.row_bytes();
    ENGRAM_RETURN_IF_ERROR(
        columns.codes != nullptr
            ? PackDirectly(columns, row, buffer.bytes(), piece)
            : checkpoint_.PackRows(layer_index, row, piece));
    ENGRAM_RETURN_IF_ERROR(on_bytes(piece.size()));
    row += rows;
    out.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status CheckpointSource::PackDirectly(const Columns& columns,
                                            uint64_t row,
                                            absl::Span<std::byte> buffer,
                                            absl::Span<std::byte> out) const {
  const RowFormat& format = manifest_.row_format();
  const size_t rows = out.size() / format.row_bytes();
  const auto pack = [&](const DirectColumn& column, size_t offset,
                        size_t width) -> absl::Status {
    ENGRAM_ASSIGN_OR_RETURN(const absl::Span<const std::byte> bytes,
                            column.Read(row * width, rows * width, buffer));
    ColumnScatter(out, format.row_bytes(), offset, width).Put(0, bytes);
    return absl::OkStatus();
  };
  ENGRAM_RETURN_IF_ERROR(pack(*columns.codes, 0, format.code_bytes()));
  return pack(*columns.scales, format.code_bytes(), format.scale_bytes());
}

}  // namespace engram

#include "table_server/loading/checkpoint_source.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace engram {
namespace {

// Rows are packed in pieces that stay in a core's cache until they are summed.
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

CheckpointSource::CheckpointSource(const Checkpoint& checkpoint,
                                   const Manifest& manifest)
    : checkpoint_(checkpoint), manifest_(manifest) {}

absl::Status CheckpointSource::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const size_t row_bytes = manifest_.row_format().row_bytes();
  const size_t rows_per_piece = std::max<size_t>(1, kPieceBytes / row_bytes);
  uint64_t row = ToInt(ref.partition) * manifest_.partition_rows();
  while (!out.empty()) {
    const absl::Span<std::byte> piece =
        out.subspan(0, rows_per_piece * row_bytes);
    ENGRAM_RETURN_IF_ERROR(checkpoint_.PackRows(layer_index, row, piece));
    ENGRAM_RETURN_IF_ERROR(on_bytes(piece.size()));
    row += rows_per_piece;
    out.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

}  // namespace engram

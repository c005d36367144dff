#include "tests/bench/row_table.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/prefetch.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"

namespace engram::bench {
namespace {

// Rows between a prefetch and its copy.
constexpr size_t kPrefetchRows = 12;
constexpr uint64_t kRowsPerLoad = 1 << 15;

absl::Status LoadLayer(const Checkpoint& checkpoint, size_t layer_index,
                       absl::Span<std::byte> out, ThreadPool& pool) {
  const size_t row_bytes = checkpoint.row_format().row_bytes();
  const uint64_t rows = out.size() / row_bytes;
  Mutex mutex;
  absl::Status status;
  pool.ParallelFor((rows + kRowsPerLoad - 1) / kRowsPerLoad, [&](size_t i) {
    const uint64_t first = i * kRowsPerLoad;
    const uint64_t count = std::min(kRowsPerLoad, rows - first);
    absl::Status loaded = checkpoint.PackRows(
        layer_index, first, out.subspan(first * row_bytes, count * row_bytes));
    MutexLock lock(&mutex);
    status.Update(loaded);
  });
  return status;
}

}  // namespace

absl::StatusOr<RowTable> RowTable::Load(const std::string& checkpoint_dir) {
  ENGRAM_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          Checkpoint::Open(checkpoint_dir));
  RowTable table;
  table.row_bytes_ = checkpoint.row_format().row_bytes();
  uint64_t rows = 0;
  for (const LayerLayout& layer : checkpoint.layout().layers()) {
    if (rows + layer.row_count > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint_dir, " has more than ",
                       std::numeric_limits<uint32_t>::max(), " rows"));
    }
    table.layers_.push_back({layer.layer_id, static_cast<uint32_t>(rows),
                             static_cast<uint32_t>(layer.row_count)});
    rows += layer.row_count;
  }
  table.row_count_ = static_cast<uint32_t>(rows);
  ENGRAM_ASSIGN_OR_RETURN(table.rows_,
                          PageBuffer::Allocate(rows * table.row_bytes_));
  ThreadPool pool({.thread_count = 0});
  for (size_t i = 0; i < table.layers_.size(); ++i) {
    const Layer& layer = table.layers_[i];
    ENGRAM_RETURN_IF_ERROR(
        LoadLayer(checkpoint, i,
                  table.rows_.bytes().subspan(
                      size_t{layer.first_index} * table.row_bytes_,
                      size_t{layer.row_count} * table.row_bytes_),
                  pool));
  }
  return table;
}

void RowTable::Gather(absl::Span<const uint32_t> indices,
                      absl::Span<std::byte> out) const {
  const size_t ahead = std::min(kPrefetchRows, indices.size());
  for (size_t i = 0; i < ahead; ++i) PrefetchBytes(row(indices[i]), row_bytes_);
  std::byte* to = out.data();
  for (size_t i = 0; i < indices.size(); ++i, to += row_bytes_) {
    if (i + ahead < indices.size()) {
      PrefetchBytes(row(indices[i + ahead]), row_bytes_);
    }
    std::memcpy(to, row(indices[i]), row_bytes_);
  }
}

absl::Status RowTable::Verify(absl::Span<const uint32_t> indices,
                              absl::Span<const std::byte> rows) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (std::memcmp(rows.data() + i * row_bytes_, row(indices[i]),
                    row_bytes_) != 0) {
      return absl::DataLossError(absl::StrCat("slot ", i, " of ",
                                              indices.size(), " is not row ",
                                              indices[i], " of the table"));
    }
  }
  return absl::OkStatus();
}

}  // namespace engram::bench

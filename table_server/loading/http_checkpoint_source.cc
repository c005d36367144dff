#include "table_server/loading/http_checkpoint_source.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "table_server/loading/column_scatter.h"

namespace engram {

namespace {

constexpr absl::Duration kRest = absl::Seconds(10);

}  // namespace

HttpCheckpointSource::HttpCheckpointSource(const HttpTable& table,
                                           const Manifest& manifest,
                                           const Clock& clock)
    : table_(table), manifest_(manifest), clock_(clock) {
  ENGRAM_CHECK(table.layers.size() == manifest.layers().size());
}

absl::Status HttpCheckpointSource::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_RETURN_IF_ERROR(CheckIsThere());
  absl::Status status = ReadColumns(ref, out, on_bytes);
  Remember(status);
  return status;
}

absl::Status HttpCheckpointSource::CheckIsThere() {
  MutexLock lock(&mutex_);
  if (clock_.Now() >= rests_until_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("asked again in ",
                   absl::FormatDuration(absl::Trunc(rests_until_ - clock_.Now(),
                                                    absl::Milliseconds(1))),
                   "; the last answer: ", failure_.message()));
}

void HttpCheckpointSource::Remember(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return;
  MutexLock lock(&mutex_);
  failure_ = status;
  rests_until_ = clock_.Now() + kRest;
}

absl::Status HttpCheckpointSource::ReadColumns(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const HttpLayer& layer = table_.layers[layer_index];
  const RowFormat& format = manifest_.row_format();
  const size_t stride = format.row_bytes();
  const size_t code_bytes = format.code_bytes();
  const uint64_t first_row = ToInt(ref.partition) * manifest_.partition_rows();
  const uint64_t rows = out.size() / stride;
  const auto wait = [&] { return on_bytes(0); };

  // The few scales first: with their codes, then, rows are whole from the
  // beginning on, as `on_bytes` promises.
  ColumnScatter scales(out, stride, code_bytes, format.scale_bytes());
  ENGRAM_ASSIGN_OR_RETURN(
      const HttpReader::FileFacts scale_file,
      table_.reader->ReadRange(
          RangeOf(layer.scales, first_row, rows, format.scale_bytes()),
          [&](uint64_t offset, absl::Span<const std::byte> bytes) {
            scales.Put(offset, bytes);
            return on_bytes(0);
          },
          wait));
  CompareEtag(layer.scales, scale_file.etag);

  ColumnScatter codes(out, stride, 0, code_bytes);
  uint64_t told_bytes = 0;
  ENGRAM_ASSIGN_OR_RETURN(
      const HttpReader::FileFacts code_file,
      table_.reader->ReadRange(
          RangeOf(layer.codes, first_row, rows, code_bytes),
          [&](uint64_t offset, absl::Span<const std::byte> bytes) {
            codes.Put(offset, bytes);
            const uint64_t whole =
                (offset + bytes.size()) / code_bytes * stride;
            const uint64_t more = whole > told_bytes ? whole - told_bytes : 0;
            told_bytes += more;
            return on_bytes(more);
          },
          wait));
  CompareEtag(layer.codes, code_file.etag);
  return absl::OkStatus();
}

HttpRange HttpCheckpointSource::RangeOf(const HttpTensor& tensor,
                                        uint64_t first_row, uint64_t rows,
                                        size_t width) {
  const uint64_t begin = tensor.range.bytes.begin + first_row * width;
  const ByteRange bytes{begin, begin + rows * width};
  ENGRAM_CHECK(rows > 0 && bytes.end <= tensor.range.bytes.end);
  return {tensor.range.url, bytes, tensor.range.file_bytes};
}

void HttpCheckpointSource::CompareEtag(const HttpTensor& tensor,
                                       const std::string& etag) {
  if (etag == tensor.etag || told_of_change_.exchange(true)) return;
  spdlog::warn(
      "{}: its ETag was {} and is {}: the file may have been changed, or its "
      "copies are told apart",
      tensor.range.url, tensor.etag, etag);
}

}  // namespace engram

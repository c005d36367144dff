#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint.h"

// How rows leave a checkpoint: codes and scales stand in two tensors there and
// interleaved in a packed row.

namespace engram {
namespace {

// Rows whose codes, then scales are copied in one go: the packed rows are
// still in the cache when their scales are added.
constexpr size_t kChunkRows = 512;

// A copy of constant size is a few instructions; kBytes 0 is any size.
template <size_t kBytes, typename RowAt>
void CopyColumns(const std::byte* source, size_t bytes, size_t stride,
                 size_t count, const RowAt& row_at, std::byte* out) {
  const size_t size = kBytes > 0 ? kBytes : bytes;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * stride, source + row_at(i) * size, size);
  }
}

// Copies `bytes` of each row from one tensor to its place in packed rows.
template <typename RowAt>
absl::Status CopyGuarded(const TensorView& tensor, size_t bytes, size_t stride,
                         size_t count, const RowAt& row_at, std::byte* out) {
  const std::byte* source = tensor.bytes.data();
  return tensor.file->Guarded([&] {
    if (bytes == 256) {  // rows of V4.1
      CopyColumns<256>(source, bytes, stride, count, row_at, out);
    } else if (bytes == 8) {  // and their scales
      CopyColumns<8>(source, bytes, stride, count, row_at, out);
    } else {
      CopyColumns<0>(source, bytes, stride, count, row_at, out);
    }
  });
}

// Row row_at(i) to slot i of `out`.
template <typename RowAt>
absl::Status Interleave(const LayerTensors& layer, const RowFormat& format,
                        size_t count, const RowAt& row_at, std::byte* out) {
  const size_t stride = format.row_bytes();
  for (size_t done = 0; done < count; done += kChunkRows) {
    const size_t rows = std::min(kChunkRows, count - done);
    const auto row_in_chunk = [&](size_t i) { return row_at(done + i); };
    std::byte* const slot = out + done * stride;
    ENGRAM_RETURN_IF_ERROR(CopyGuarded(layer.embed_weight, format.code_bytes(),
                                       stride, rows, row_in_chunk, slot));
    ENGRAM_RETURN_IF_ERROR(CopyGuarded(layer.embed_scale, format.scale_bytes(),
                                       stride, rows, row_in_chunk,
                                       slot + format.code_bytes()));
  }
  return absl::OkStatus();
}

absl::Status CheckLayerIndex(size_t layer_index, size_t layer_count) {
  if (layer_index < layer_count) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("layer index ", layer_index, " of ",
                                            layer_count, " layers"));
}

absl::Status RowOutOfRange(const LayerLayout& layer, uint64_t row) {
  return absl::OutOfRangeError(
      absl::StrCat("row ", row, " of layer ", ToInt(layer.layer_id),
                   ", which has ", layer.row_count, " rows"));
}

constexpr uint64_t kEveryByte = 0x0101010101010101;
constexpr uint64_t kLow7 = 0x7F * kEveryByte;

// NaN in e4m3: the lower seven bits are all set. 1 in each byte that is one:
// adding 1 to seven set bits carries into the eighth.
uint64_t NanCodes(uint64_t eight_codes) {
  return ((eight_codes & kLow7) + kEveryByte) >> 7 & kEveryByte;
}

// NaN in e8m0: 255.
uint64_t NanScales(uint64_t eight_scales) {
  return NanCodes(eight_scales) & eight_scales >> 7;
}

// Sum of the bytes of `counts`.
uint64_t SumOfBytes(uint64_t counts) {
  constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF;
  const uint64_t pairs = (counts & kEvenBytes) + (counts >> 8 & kEvenBytes);
  return pairs * 0x0001000100010001 >> 48;
}

// Sum of what kNanOf finds, eight bytes at a time: a table has 10^11 codes.
template <uint64_t (*kNanOf)(uint64_t)>
uint64_t CountNan(const std::byte* bytes, size_t size) {
  constexpr size_t kWordBytes = sizeof(uint64_t);
  constexpr size_t kMaxWords = 255;  // as far as a byte counts
  uint64_t total = 0;
  while (size >= kWordBytes) {
    const size_t words = std::min(size / kWordBytes, kMaxWords);
    uint64_t counts = 0;
    for (size_t i = 0; i < words; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + i * kWordBytes, kWordBytes);
      counts += kNanOf(word);
    }
    total += SumOfBytes(counts);
    bytes += words * kWordBytes;
    size -= words * kWordBytes;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes, size);
  return total + SumOfBytes(kNanOf(rest));
}

}  // namespace

absl::Status Checkpoint::PackRows(size_t layer_index, uint64_t first_row,
                                  absl::Span<std::byte> out) const {
  ENGRAM_RETURN_IF_ERROR(CheckLayerIndex(layer_index, layers_.size()));
  const LayerLayout& layer = layout_.layers()[layer_index];
  const uint64_t count = out.size() / row_format_.row_bytes();
  if (out.size() % row_format_.row_bytes() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(out.size(), " bytes are not whole rows of ",
                     row_format_.row_bytes(), " bytes"));
  }
  if (first_row > layer.row_count || count > layer.row_count - first_row) {
    return RowOutOfRange(layer, std::max(first_row, layer.row_count));
  }
  return Interleave(
      layers_[layer_index], row_format_, count,
      [first_row](size_t i) { return first_row + i; }, out.data());
}

absl::Status Checkpoint::GatherRows(size_t layer_index,
                                    absl::Span<const RowId> row_ids,
                                    absl::Span<std::byte> out) const {
  ENGRAM_RETURN_IF_ERROR(CheckLayerIndex(layer_index, layers_.size()));
  const LayerLayout& layer = layout_.layers()[layer_index];
  if (out.size() != row_ids.size() * row_format_.row_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(out.size(), " bytes for ", row_ids.size(), " rows of ",
                     row_format_.row_bytes(), " bytes"));
  }
  for (const RowId row : row_ids) {
    if (row >= layer.row_count) return RowOutOfRange(layer, row);
  }
  return Interleave(
      layers_[layer_index], row_format_, row_ids.size(),
      [row_ids](size_t i) { return uint64_t{row_ids[i]}; }, out.data());
}

RowDefects CountDefects(const RowFormat& format,
                        absl::Span<const std::byte> packed_rows) {
  const size_t stride = format.row_bytes();
  RowDefects defects;
  for (size_t at = 0; at + stride <= packed_rows.size(); at += stride) {
    const std::byte* row = packed_rows.data() + at;
    defects.nan_codes += CountNan<NanCodes>(row, format.code_bytes());
    defects.nan_scales +=
        CountNan<NanScales>(row + format.code_bytes(), format.scale_bytes());
  }
  return defects;
}

}  // namespace engram

#include "core/wire/gather_request.h"

#include <google/protobuf/io/coded_stream.h>

#include <bit>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "core/base/check.h"
#include "engram/v1/table.pb.h"

namespace engram {
namespace {

using google::protobuf::io::CodedOutputStream;

static_assert(std::endian::native == std::endian::little,
              "row ids are sent as they lie in memory");

constexpr uint8_t VarintTag(int field) {
  return static_cast<uint8_t>(field << 3);
}
constexpr uint8_t BytesTag(int field) {
  return static_cast<uint8_t>(field << 3 | 2);
}

// With its length in front, after a tag of one byte.
size_t BytesFieldSize(uint64_t size) {
  return 1 + CodedOutputStream::VarintSize64(size) + size;
}

// The runs of one layer, as one message.
struct Layer {
  LayerId id{};
  uint64_t ids_bytes = 0;
  absl::Span<const RowRun> runs;

  size_t size() const {
    return 1 + CodedOutputStream::VarintSize32(ToInt(id)) +
           BytesFieldSize(ids_bytes);
  }
};

void ForEachLayer(absl::Span<const RowRun> runs,
                  absl::FunctionRef<void(const Layer&)> visit) {
  size_t begin = 0;
  while (begin < runs.size()) {
    Layer layer{.id = runs[begin].layer};
    size_t end = begin;
    for (; end < runs.size() && runs[end].layer == layer.id; ++end) {
      layer.ids_bytes += runs[end].row_ids.size() * sizeof(RowId);
    }
    layer.runs = runs.subspan(begin, end - begin);
    visit(layer);
    begin = end;
  }
}

size_t GatherSize(absl::string_view version, absl::Span<const RowRun> runs,
                  bool want_crc32c) {
  size_t size = BytesFieldSize(version.size()) + (want_crc32c ? 2 : 0);
  ForEachLayer(
      runs, [&](const Layer& layer) { size += BytesFieldSize(layer.size()); });
  return size;
}

uint8_t* WriteBytesHead(int field, uint64_t size, uint8_t* out) {
  *out++ = BytesTag(field);
  return CodedOutputStream::WriteVarint64ToArray(size, out);
}

uint8_t* WriteRaw(const void* data, size_t size, uint8_t* out) {
  if (size > 0) std::memcpy(out, data, size);
  return out + size;
}

uint8_t* WriteLayer(const Layer& layer, uint8_t* out) {
  out =
      WriteBytesHead(v1::GatherRequest::kLayersFieldNumber, layer.size(), out);
  *out++ = VarintTag(v1::LayerRows::kLayerIdFieldNumber);
  out = CodedOutputStream::WriteVarint32ToArray(ToInt(layer.id), out);
  out = WriteBytesHead(v1::LayerRows::kRowIdsFieldNumber, layer.ids_bytes, out);
  for (const RowRun& run : layer.runs) {
    out = WriteRaw(run.row_ids.data(), run.row_ids.size() * sizeof(RowId), out);
  }
  return out;
}

uint8_t* Begin(ShortMessage& message) {
  return reinterpret_cast<uint8_t*>(message.bytes.data());
}

uint8_t* WriteCallId(uint64_t call_id, uint8_t* out) {
  *out++ = VarintTag(v1::GatherStreamRequest::kCallIdFieldNumber);
  return CodedOutputStream::WriteVarint64ToArray(call_id, out);
}

}  // namespace

size_t GatherFieldSize(absl::string_view version, absl::Span<const RowRun> runs,
                       bool want_crc32c) {
  return BytesFieldSize(GatherSize(version, runs, want_crc32c));
}

void WriteGatherField(absl::string_view version, absl::Span<const RowRun> runs,
                      bool want_crc32c, absl::Span<std::byte> out) {
  auto* const begin = reinterpret_cast<uint8_t*>(out.data());
  uint8_t* at = WriteBytesHead(v1::GatherStreamRequest::kGatherFieldNumber,
                               GatherSize(version, runs, want_crc32c), begin);
  at = WriteBytesHead(v1::GatherRequest::kVersionFieldNumber, version.size(),
                      at);
  at = WriteRaw(version.data(), version.size(), at);
  ForEachLayer(runs, [&](const Layer& layer) { at = WriteLayer(layer, at); });
  if (want_crc32c) {
    *at++ = VarintTag(v1::GatherRequest::kWantCrc32CFieldNumber);
    *at++ = 1;
  }
  ENGRAM_CHECK(at == begin + out.size());
}

ShortMessage GatherHead(uint64_t call_id, uint64_t timeout_us) {
  ShortMessage head;
  uint8_t* at = WriteCallId(call_id, Begin(head));
  *at++ = VarintTag(v1::GatherStreamRequest::kTimeoutUsFieldNumber);
  at = CodedOutputStream::WriteVarint64ToArray(timeout_us, at);
  head.size = static_cast<size_t>(at - Begin(head));
  return head;
}

ShortMessage CancelMessage(uint64_t call_id) {
  ShortMessage message;
  uint8_t* at = WriteCallId(call_id, Begin(message));
  at = WriteBytesHead(v1::GatherStreamRequest::kCancelFieldNumber, 0, at);
  message.size = static_cast<size_t>(at - Begin(message));
  return message;
}

}  // namespace engram

#include "core/wire/piece_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <cstring>

#include "core/base/check.h"
#include "engram/v1/table.pb.h"

namespace engram {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// One field after another, into a buffer that is large enough for any.
class FieldWriter {
 public:
  void Varint(int field, uint64_t value) {
    Tag(field, WireFormatLite::WIRETYPE_VARINT);
    at_ = CodedOutputStream::WriteVarint64ToArray(value, at_);
  }
  void Fixed32(int field, uint32_t value) {
    Tag(field, WireFormatLite::WIRETYPE_FIXED32);
    at_ = CodedOutputStream::WriteLittleEndian32ToArray(value, at_);
  }
  // The beginning of a field whose bytes follow elsewhere.
  void Length(int field, size_t bytes) {
    Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    at_ = CodedOutputStream::WriteVarint64ToArray(bytes, at_);
  }
  void Bytes(int field, absl::string_view bytes) {
    Length(field, bytes.size());
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  size_t size() const { return static_cast<size_t>(at_ - buffer_.data()); }

  size_t CopyToEndOf(absl::Span<std::byte> out) const {
    ENGRAM_CHECK(size() <= out.size());
    std::memcpy(out.data() + out.size() - size(), buffer_.data(), size());
    return size();
  }
  size_t CopyToBeginOf(absl::Span<std::byte> out) const {
    ENGRAM_CHECK(size() <= out.size());
    std::memcpy(out.data(), buffer_.data(), size());
    return size();
  }

 private:
  void Tag(int field, WireFormatLite::WireType type) {
    at_ = CodedOutputStream::WriteTagToArray(
        WireFormatLite::MakeTag(field, type), at_);
  }

  std::array<uint8_t, kTailRoomBytes> buffer_;
  uint8_t* at_ = buffer_.data();
};

template <typename Message>
void WriteEnd(const ReplyEnd& end, FieldWriter& writer) {
  ENGRAM_CHECK(end.version.size() <= kMaxTailVersionBytes);
  writer.Bytes(Message::kVersionFieldNumber, end.version);
  if (end.crc32c.has_value()) {
    writer.Fixed32(Message::kCrc32CFieldNumber, *end.crc32c);
  }
}

}  // namespace

Framing FramePiece(uint64_t call_id, size_t rows_bytes, const ReplyEnd* end,
                   absl::Span<std::byte> head, absl::Span<std::byte> tail) {
  using Piece = v1::GatherStreamResponse::Piece;
  FieldWriter after;
  if (end != nullptr) {
    after.Varint(Piece::kLastFieldNumber, 1);
    WriteEnd<Piece>(*end, after);
  }
  FieldWriter rows_head;
  rows_head.Length(Piece::kRowsFieldNumber, rows_bytes);
  FieldWriter before;
  before.Varint(v1::GatherStreamResponse::kCallIdFieldNumber, call_id);
  before.Length(v1::GatherStreamResponse::kPieceFieldNumber,
                rows_head.size() + rows_bytes + after.size());
  Framing framing;
  framing.before = rows_head.CopyToEndOf(head);
  framing.before +=
      before.CopyToEndOf(head.first(head.size() - framing.before));
  framing.after = after.CopyToBeginOf(tail);
  return framing;
}

Framing FrameResponse(size_t rows_bytes, const ReplyEnd& end,
                      absl::Span<std::byte> head, absl::Span<std::byte> tail) {
  FieldWriter before;
  before.Length(v1::GatherResponse::kRowsFieldNumber, rows_bytes);
  FieldWriter after;
  WriteEnd<v1::GatherResponse>(end, after);
  return {before.CopyToEndOf(head), after.CopyToBeginOf(tail)};
}

}  // namespace engram

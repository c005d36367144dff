#include "core/wire/piece_reader.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "engram/v1/table.pb.h"

namespace engram {
namespace {

using Response = v1::GatherStreamResponse;
using Piece = v1::GatherStreamResponse::Piece;

// As protobuf: messages and groups within each other.
constexpr int kMaxDepth = 100;
constexpr int kMaxVarintBytes = 10;
constexpr int kMaxShortVarintBytes = 5;  // of tags and lengths

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

constexpr uint32_t Tag(int field, WireType type) {
  return static_cast<uint32_t>(field) << 3 | type;
}
constexpr uint32_t FieldOf(uint32_t tag) { return tag >> 3; }
constexpr uint32_t TypeOf(uint32_t tag) { return tag & 7; }

constexpr uint32_t kCallId = Tag(Response::kCallIdFieldNumber, kVarint);
constexpr uint32_t kPiece = Tag(Response::kPieceFieldNumber, kLengthDelimited);
constexpr uint32_t kError = Tag(Response::kErrorFieldNumber, kLengthDelimited);
constexpr uint32_t kRows = Tag(Piece::kRowsFieldNumber, kLengthDelimited);
constexpr uint32_t kLast = Tag(Piece::kLastFieldNumber, kVarint);
constexpr uint32_t kVersion = Tag(Piece::kVersionFieldNumber, kLengthDelimited);
constexpr uint32_t kCrc32c = Tag(Piece::kCrc32CFieldNumber, kFixed32);

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("message cannot be decoded: ", what));
}

// A place in the slices, and an end that is not passed.
class Cursor {
 public:
  explicit Cursor(absl::Span<const absl::Span<const std::byte>> slices)
      : slices_(slices) {
    for (const auto& slice : slices) left_ += slice.size();
  }

  uint64_t left() const { return left_; }

  // A varint of at most `max_bytes`; what is above 64 bits is dropped.
  absl::StatusOr<uint64_t> ReadVarint(int max_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (left_ == 0) return Malformed("a number is cut off");
      const auto byte = static_cast<uint64_t>(TakeByte());
      value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    return Malformed("a number is too long");
  }

  absl::StatusOr<uint64_t> ReadLength() {
    ENGRAM_ASSIGN_OR_RETURN(const uint64_t length,
                            ReadVarint(kMaxShortVarintBytes));
    if (length > left_) return TooLong(length);
    return length;
  }

  absl::StatusOr<uint32_t> ReadFixed32() {
    if (left_ < sizeof(uint32_t)) return TooLong(sizeof(uint32_t));
    uint32_t value = 0;
    for (size_t i = 0; i < sizeof(value); ++i) {
      value |= static_cast<uint32_t>(TakeByte()) << (8 * i);
    }
    return value;
  }

  absl::Status Skip(uint64_t bytes) {
    return Take(bytes, [](absl::Span<const std::byte>) {});
  }

  // The next `bytes`, which may lie in several slices.
  template <typename OnSpan>
  absl::Status Take(uint64_t bytes, OnSpan on_span) {
    if (bytes > left_) return TooLong(bytes);
    left_ -= bytes;
    while (bytes > 0) {
      SkipEmpty();
      const absl::Span<const std::byte> slice = slices_[slice_];
      const size_t here = std::min<uint64_t>(bytes, slice.size() - offset_);
      on_span(slice.subspan(offset_, here));
      offset_ += here;
      bytes -= here;
    }
    return absl::OkStatus();
  }

  // Sets the end `bytes` from here; returns what lies behind it, for Widen.
  // REQUIRES: bytes <= left().
  uint64_t Narrow(uint64_t bytes) {
    const uint64_t behind = left_ - bytes;
    left_ = bytes;
    return behind;
  }
  void Widen(uint64_t behind) { left_ += behind; }

 private:
  absl::Status TooLong(uint64_t bytes) const {
    return Malformed(
        absl::StrCat("a field of ", bytes, " bytes where ", left_, " are"));
  }

  // REQUIRES: left() > 0.
  std::byte TakeByte() {
    SkipEmpty();
    --left_;
    return slices_[slice_][offset_++];
  }

  void SkipEmpty() {
    while (offset_ == slices_[slice_].size()) {
      ++slice_;
      offset_ = 0;
    }
  }

  const absl::Span<const absl::Span<const std::byte>> slices_;
  size_t slice_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

absl::StatusOr<uint32_t> ReadTag(Cursor& cursor) {
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t value,
                          cursor.ReadVarint(kMaxShortVarintBytes));
  const auto tag = static_cast<uint32_t>(value);
  if (FieldOf(tag) == 0) return Malformed("field 0");
  return tag;
}

absl::Status SkipField(Cursor& cursor, uint32_t tag, int depth);

absl::Status SkipGroup(Cursor& cursor, uint32_t start_tag, int depth) {
  if (depth >= kMaxDepth) return Malformed("groups nest too deep");
  while (true) {
    ENGRAM_ASSIGN_OR_RETURN(const uint32_t tag, ReadTag(cursor));
    if (TypeOf(tag) == kEndGroup) {
      const bool matches = FieldOf(tag) == FieldOf(start_tag);
      return matches ? absl::OkStatus() : Malformed("another group ends");
    }
    ENGRAM_RETURN_IF_ERROR(SkipField(cursor, tag, depth + 1));
  }
}

// `depth`: messages and groups around the field.
absl::Status SkipField(Cursor& cursor, uint32_t tag, int depth) {
  switch (TypeOf(tag)) {
    case kVarint:
      return cursor.ReadVarint(kMaxVarintBytes).status();
    case kFixed64:
      return cursor.Skip(sizeof(uint64_t));
    case kLengthDelimited: {
      ENGRAM_ASSIGN_OR_RETURN(const uint64_t length, cursor.ReadLength());
      return cursor.Skip(length);
    }
    case kStartGroup:
      return SkipGroup(cursor, tag, depth);
    case kFixed32:
      return cursor.Skip(sizeof(uint32_t));
    default:
      return Malformed(absl::StrCat("tag ", tag));
  }
}

absl::Status AppendText(Cursor& cursor, std::string& text) {
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t length, cursor.ReadLength());
  return cursor.Take(length, [&](absl::Span<const std::byte> span) {
    text.append(reinterpret_cast<const char*>(span.data()), span.size());
  });
}

absl::Status ReadRows(Cursor& cursor, PieceMessage& message) {
  ENGRAM_ASSIGN_OR_RETURN(message.rows_bytes, cursor.ReadLength());
  message.rows.clear();
  return cursor.Take(message.rows_bytes, [&](absl::Span<const std::byte> span) {
    message.rows.push_back(span);
  });
}

absl::Status ReadPieceField(Cursor& cursor, PieceMessage& message) {
  ENGRAM_ASSIGN_OR_RETURN(const uint32_t tag, ReadTag(cursor));
  switch (tag) {
    case kRows:
      return ReadRows(cursor, message);
    case kLast: {
      ENGRAM_ASSIGN_OR_RETURN(const uint64_t last,
                              cursor.ReadVarint(kMaxVarintBytes));
      message.last = last != 0;
      return absl::OkStatus();
    }
    case kVersion:
      message.version.clear();
      return AppendText(cursor, message.version);
    case kCrc32c: {
      ENGRAM_ASSIGN_OR_RETURN(message.crc32c, cursor.ReadFixed32());
      return absl::OkStatus();
    }
    default:
      return SkipField(cursor, tag, /*depth=*/1);
  }
}

// Of two of one kind the second is merged into the first; another kind takes
// its place.
void Become(PieceMessage& message, PieceMessage::Kind kind) {
  if (message.kind == kind) return;
  const uint64_t call_id = message.call_id;
  message = PieceMessage();
  message.call_id = call_id;
  message.kind = kind;
}

absl::Status ReadPiece(Cursor& cursor, PieceMessage& message) {
  Become(message, PieceMessage::Kind::kPiece);
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t length, cursor.ReadLength());
  const uint64_t behind = cursor.Narrow(length);
  while (cursor.left() > 0) {
    ENGRAM_RETURN_IF_ERROR(ReadPieceField(cursor, message));
  }
  cursor.Widen(behind);
  return absl::OkStatus();
}

absl::Status ReadField(Cursor& cursor, PieceMessage& message) {
  ENGRAM_ASSIGN_OR_RETURN(const uint32_t tag, ReadTag(cursor));
  switch (tag) {
    case kCallId: {
      ENGRAM_ASSIGN_OR_RETURN(message.call_id,
                              cursor.ReadVarint(kMaxVarintBytes));
      return absl::OkStatus();
    }
    case kPiece:
      return ReadPiece(cursor, message);
    case kError:
      // Messages one after another are the merged message.
      Become(message, PieceMessage::Kind::kError);
      return AppendText(cursor, message.error);
    default:
      return SkipField(cursor, tag, /*depth=*/0);
  }
}

}  // namespace

absl::StatusOr<PieceMessage> ReadPieceMessage(
    absl::Span<const absl::Span<const std::byte>> slices) {
  Cursor cursor(slices);
  PieceMessage message;
  while (cursor.left() > 0) {
    ENGRAM_RETURN_IF_ERROR(ReadField(cursor, message));
  }
  return message;
}

}  // namespace engram

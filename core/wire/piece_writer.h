#ifndef ENGRAM_CORE_WIRE_PIECE_WRITER_H_
#define ENGRAM_CORE_WIRE_PIECE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// Replies that carry rows, serialised around the rows where they lie, without a
// copy of them: protobuf's parsers read them as any other message.
//
//   | ... head | rows | tail ... |
//
// A buffer has kHeadRoomBytes before its rows and kTailRoomBytes after them.
// `head` ends where the rows begin, `tail` begins where they end.
inline constexpr size_t kHeadRoomBytes = 64;  // a cache line
inline constexpr size_t kTailRoomBytes = 128;

// Longest version id that fits a tail.
inline constexpr size_t kMaxTailVersionBytes = 96;

// What stands after the last rows of a gather.
struct ReplyEnd {
  absl::string_view version;  // REQUIRES: at most kMaxTailVersionBytes
  std::optional<uint32_t> crc32c;
};

// The part of a buffer that is the message; `before` counts back from the
// rows' begin, `after` on from their end.
struct Framing {
  size_t before = 0;
  size_t after = 0;
};

// v1::GatherStreamResponse with one piece. `end` is null but for the last one.
// REQUIRES: `head` and `tail` have the rooms above.
Framing FramePiece(uint64_t call_id, size_t rows_bytes, const ReplyEnd* end,
                   absl::Span<std::byte> head, absl::Span<std::byte> tail);

// v1::GatherResponse, whose rows may lie in several buffers: the head stands
// before the first, the tail after the last.
Framing FrameResponse(size_t rows_bytes, const ReplyEnd& end,
                      absl::Span<std::byte> head, absl::Span<std::byte> tail);

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_PIECE_WRITER_H_

#ifndef ENGRAM_CORE_WIRE_PIECE_READER_H_
#define ENGRAM_CORE_WIRE_PIECE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

// One v1::GatherStreamResponse, with its rows left where they came in.
struct PieceMessage {
  enum class Kind { kNone, kPiece, kError };

  uint64_t call_id = 0;
  Kind kind = Kind::kNone;

  // Of a piece. `rows`: views into the message, in order, none of them empty.
  std::vector<absl::Span<const std::byte>> rows;
  uint64_t rows_bytes = 0;
  bool last = false;
  std::string version;
  uint32_t crc32c = 0;

  // Of an error: a serialized google.rpc.Status, not looked into.
  std::string error;
};

// Reads a serialized v1::GatherStreamResponse that lies in `slices`, one after
// another. Takes every encoding that protobuf takes: fields in any order, more
// than once, unknown ones. INVALID_ARGUMENT for whatever is none. Beyond what
// protobuf takes, strings need not be UTF-8.
absl::StatusOr<PieceMessage> ReadPieceMessage(
    absl::Span<const absl::Span<const std::byte>> slices);

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_PIECE_READER_H_

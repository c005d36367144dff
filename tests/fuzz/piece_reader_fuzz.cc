#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/wire/piece_reader.h"
#include "engram/v1/table.pb.h"
#include "tests/fuzz/fuzz_input.h"

namespace engram {
namespace {

using Slices = std::vector<absl::Span<const std::byte>>;

// In pieces of `size`, each in memory of its own, where reading outside shows.
absl::StatusOr<v1::GatherStreamResponse> Read(absl::string_view bytes,
                                              size_t size) {
  std::vector<std::vector<std::byte>> pieces;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    const absl::string_view piece = bytes.substr(0, size);
    const auto* const data = reinterpret_cast<const std::byte*>(piece.data());
    pieces.emplace_back(data, data + piece.size());
  }
  const absl::StatusOr<PieceMessage> read =
      ReadPieceMessage(Slices(pieces.begin(), pieces.end()));
  if (!read.ok()) return read.status();
  v1::GatherStreamResponse response;
  response.set_call_id(read->call_id);
  if (read->kind == PieceMessage::Kind::kPiece) {
    auto& piece = *response.mutable_piece();
    for (const absl::Span<const std::byte> rows : read->rows) {
      piece.mutable_rows()->append(reinterpret_cast<const char*>(rows.data()),
                                   rows.size());
    }
    ENGRAM_CHECK(piece.rows().size() == read->rows_bytes);
    piece.set_last(read->last);
    piece.set_version(read->version);
    piece.set_crc32c(read->crc32c);
  }
  if (read->kind == PieceMessage::Kind::kError &&
      !response.mutable_error()->ParseFromString(read->error)) {
    return absl::InvalidArgumentError("the error is no status");
  }
  return response;
}

std::string Known(v1::GatherStreamResponse response) {
  response.DiscardUnknownFields();
  return response.SerializeAsString();
}

}  // namespace
}  // namespace engram

// Input: the length of the slices, then a v1::GatherStreamResponse. What
// protobuf reads is read, as the same; strings that are not UTF-8 may be read
// where protobuf refuses them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each bad string
  if (size == 0) return 0;
  const std::string bytes(engram::test::AsText(data + 1, size - 1));
  const auto whole = engram::Read(bytes, bytes.size() + 1);
  const auto cut = engram::Read(bytes, size_t{data[0]} % 16 + 1);
  ENGRAM_CHECK(whole.status() == cut.status());
  engram::v1::GatherStreamResponse expected;
  if (expected.ParseFromString(bytes)) {
    ENGRAM_CHECK(whole.ok() && cut.ok());
    ENGRAM_CHECK(engram::Known(*whole) == engram::Known(expected));
    ENGRAM_CHECK(engram::Known(*cut) == engram::Known(expected));
  }
  return 0;
}

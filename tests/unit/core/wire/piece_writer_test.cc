#include "core/wire/piece_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engram/v1/table.pb.h"

namespace engram {
namespace {

// Rows with room around them, as a reply buffer has it.
class Buffer {
 public:
  explicit Buffer(size_t rows_bytes)
      : bytes_(kHeadRoomBytes + rows_bytes + kTailRoomBytes, std::byte{0xEE}),
        rows_bytes_(rows_bytes) {
    for (size_t i = 0; i < rows_bytes; ++i) {
      bytes_[kHeadRoomBytes + i] = static_cast<std::byte>(i * 31);
    }
  }

  absl::Span<std::byte> head() {
    return absl::MakeSpan(bytes_).first(kHeadRoomBytes);
  }
  absl::Span<std::byte> tail() {
    return absl::MakeSpan(bytes_).last(kTailRoomBytes);
  }
  std::string rows() const { return Text(kHeadRoomBytes, rows_bytes_); }
  std::string Message(const Framing& framing) const {
    return Text(kHeadRoomBytes - framing.before,
                framing.before + rows_bytes_ + framing.after);
  }

 private:
  std::string Text(size_t begin, size_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, size};
  }

  std::vector<std::byte> bytes_;
  size_t rows_bytes_;
};

const std::string kVersion(64, 'c');

TEST(PieceWriterTest, APieceIsWhatProtobufReads) {
  for (const size_t rows_bytes : {0, 1, 127, 128, 264, 16383, 16384, 130000}) {
    for (const uint64_t call_id :
         {uint64_t{0}, uint64_t{1}, uint64_t{300}, ~uint64_t{0}}) {
      Buffer buffer(rows_bytes);
      const Framing framing = FramePiece(call_id, rows_bytes, nullptr,
                                         buffer.head(), buffer.tail());
      v1::GatherStreamResponse response;
      ASSERT_TRUE(response.ParseFromString(buffer.Message(framing)));
      EXPECT_EQ(response.call_id(), call_id);
      ASSERT_TRUE(response.has_piece());
      EXPECT_EQ(response.piece().rows(), buffer.rows());
      EXPECT_FALSE(response.piece().last());
      EXPECT_TRUE(response.piece().version().empty());
    }
  }
}

TEST(PieceWriterTest, TheLastPieceCarriesTheEnd) {
  for (const bool sum : {false, true}) {
    Buffer buffer(264);
    ReplyEnd end{.version = kVersion, .crc32c = std::nullopt};
    if (sum) end.crc32c = 0xDEADBEEF;
    const Framing framing =
        FramePiece(7, 264, &end, buffer.head(), buffer.tail());
    v1::GatherStreamResponse response;
    ASSERT_TRUE(response.ParseFromString(buffer.Message(framing)));
    EXPECT_TRUE(response.piece().last());
    EXPECT_EQ(response.piece().rows(), buffer.rows());
    EXPECT_EQ(response.piece().version(), kVersion);
    EXPECT_EQ(response.piece().crc32c(), sum ? 0xDEADBEEF : 0);
  }
}

TEST(PieceWriterTest, AResponseMayLieInSeveralBuffers) {
  Buffer first(1000);
  Buffer second(264);
  const ReplyEnd end{.version = kVersion, .crc32c = 5};
  const Framing framing = FrameResponse(1264, end, first.head(), second.tail());
  v1::GatherResponse response;
  ASSERT_TRUE(response.ParseFromString(
      first.Message({.before = framing.before, .after = 0}) +
      second.Message({.before = 0, .after = framing.after})));
  EXPECT_EQ(response.rows(), first.rows() + second.rows());
  EXPECT_EQ(response.version(), kVersion);
  EXPECT_EQ(response.crc32c(), 5u);
}

TEST(PieceWriterDeathTest, AVersionThatDoesNotFitIsOurBug) {
  Buffer buffer(1);
  const std::string version(kMaxTailVersionBytes + 1, 'x');
  const ReplyEnd end{.version = version, .crc32c = std::nullopt};
  EXPECT_DEATH(FramePiece(1, 1, &end, buffer.head(), buffer.tail()), "");
}

}  // namespace
}  // namespace engram

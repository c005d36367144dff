#include "core/wire/piece_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engram/v1/table.pb.h"

namespace engram {
namespace {

using Kind = PieceMessage::Kind;
using Slices = std::vector<absl::Span<const std::byte>>;

absl::Span<const std::byte> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string RowsOf(const PieceMessage& message) {
  std::string rows;
  for (const absl::Span<const std::byte> span : message.rows) {
    EXPECT_FALSE(span.empty());
    rows.append(reinterpret_cast<const char*>(span.data()), span.size());
  }
  EXPECT_EQ(rows.size(), message.rows_bytes);
  return rows;
}

absl::StatusOr<PieceMessage> Read(absl::string_view bytes) {
  const Slices slices = {AsBytes(bytes)};
  return ReadPieceMessage(slices);
}

v1::GatherStreamResponse LastPiece() {
  v1::GatherStreamResponse response;
  response.set_call_id(uint64_t{1} << 40);
  auto* piece = response.mutable_piece();
  piece->set_rows(std::string(300, 'r'));
  piece->set_last(true);
  piece->set_version(std::string(64, 'v'));
  piece->set_crc32c(0x89abcdef);
  return response;
}

void ExpectLastPiece(const absl::StatusOr<PieceMessage>& read) {
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->call_id, uint64_t{1} << 40);
  EXPECT_EQ(read->kind, Kind::kPiece);
  EXPECT_EQ(RowsOf(*read), std::string(300, 'r'));
  EXPECT_TRUE(read->last);
  EXPECT_EQ(read->version, std::string(64, 'v'));
  EXPECT_EQ(read->crc32c, 0x89abcdef);
}

TEST(PieceReaderTest, ReadsWhateverTheSlices) {
  const std::string bytes = LastPiece().SerializeAsString();
  const absl::string_view all(bytes);
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); ++j) {
      const Slices slices = {AsBytes(all.substr(0, i)),
                             AsBytes(all.substr(i, j - i)),
                             {},
                             AsBytes(all.substr(j))};
      ExpectLastPiece(ReadPieceMessage(slices));
    }
  }
  Slices single;
  for (size_t i = 0; i < all.size(); ++i) {
    single.push_back(AsBytes(all.substr(i, 1)));
  }
  ExpectLastPiece(ReadPieceMessage(single));
}

TEST(PieceReaderTest, EveryCutIsAnErrorOrWhatProtobufReads) {
  const std::string bytes = LastPiece().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    v1::GatherStreamResponse response;
    EXPECT_EQ(Read(cut).ok(), response.ParseFromString(cut)) << size;
  }
}

TEST(PieceReaderTest, ReadsAnErrorWithoutLookingIntoIt) {
  v1::GatherStreamResponse response;
  response.set_call_id(7);
  response.mutable_error()->set_code(14);
  response.mutable_error()->set_message("gone");
  const auto read = Read(response.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->call_id, 7u);
  EXPECT_EQ(read->kind, Kind::kError);
  EXPECT_EQ(read->error, response.error().SerializeAsString());
}

TEST(PieceReaderTest, AnEmptyMessageIsOfNoKind) {
  for (const Slices& slices : {Slices(), Slices(3)}) {
    const auto read = ReadPieceMessage(slices);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->call_id, 0u);
    EXPECT_EQ(read->kind, Kind::kNone);
  }
}

TEST(PieceReaderTest, AnEmptyPieceIsAPiece) {
  const auto read = Read(std::string("\x12\x00", 2));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->kind, Kind::kPiece);
  EXPECT_TRUE(read->rows.empty());
  EXPECT_FALSE(read->last);
}

TEST(PieceReaderTest, FieldsStandInAnyOrderAndTheLastOneCounts) {
  v1::GatherStreamResponse first;
  first.set_call_id(1);
  first.mutable_piece()->set_rows("first");
  first.mutable_piece()->set_version("kept");
  v1::GatherStreamResponse second;
  second.mutable_piece()->set_rows("second");
  v1::GatherStreamResponse id;
  id.set_call_id(2);
  const std::string bytes = first.SerializeAsString() +
                            second.SerializeAsString() + id.SerializeAsString();
  const auto read = Read(bytes);  // refers to the bytes
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->call_id, 2u);
  EXPECT_EQ(RowsOf(*read), "second");
  EXPECT_EQ(read->version, "kept");  // pieces are merged
}

TEST(PieceReaderTest, AnotherKindTakesThePlace) {
  const std::string piece = LastPiece().SerializeAsString();
  v1::GatherStreamResponse response;
  response.set_call_id(1);
  response.mutable_error()->set_code(3);
  const std::string error = response.SerializeAsString();
  const auto error_last = Read(piece + error);
  ASSERT_TRUE(error_last.ok());
  EXPECT_EQ(error_last->kind, Kind::kError);
  EXPECT_TRUE(error_last->rows.empty());
  EXPECT_TRUE(error_last->version.empty());
  ExpectLastPiece(Read(error + piece));
}

TEST(PieceReaderTest, UnknownFieldsArePassedOver) {
  const std::string unknown[] = {
      std::string("\x78\x96\x01", 3),                          // 15: varint
      std::string("\x79\x01\x02\x03\x04\x05\x06\x07\x08", 9),  // 64 bits
      std::string("\x7a\x02xx", 4),                            // bytes
      std::string("\x7b\x7b\x78\x01\x7c\x7c", 6),              // groups
      std::string("\x7d\x01\x02\x03\x04", 5),                  // 32 bits
      std::string("\x0d\x01\x02\x03\x04", 5),  // call_id as another type
  };
  for (const std::string& field : unknown) {
    ExpectLastPiece(Read(field + LastPiece().SerializeAsString() + field));
    v1::GatherStreamResponse response = LastPiece();
    std::string piece = response.piece().SerializeAsString() + field;
    response.clear_piece();
    piece = "\x12" + std::string(1, static_cast<char>(piece.size() | 0x80)) +
            std::string(1, static_cast<char>(piece.size() >> 7)) + piece;
    ExpectLastPiece(Read(response.SerializeAsString() + piece));
  }
}

TEST(PieceReaderTest, RefusesWhatIsNoMessage) {
  const std::string bad[] = {
      std::string("\x08", 1),  // a field without its value
      std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),
      std::string("\x88\x80\x80\x80\x80\x00\x01", 7),  // a tag of six bytes
      std::string("\x12\x05\x0a\x04xx", 6),            // longer than there is
      std::string("\x12\x02\x0a\x01x", 5),             // rows leave their piece
      std::string("\x12\x03\x25\x01\x02", 5),          // crc32c is cut off
      std::string("\x12\x80\x80\x80\x80\x80\x00", 7),  // a length of six bytes
      std::string("\x00\x00", 2),                      // field 0
      std::string("\x7c", 1),          // a group ends, none began
      std::string("\x7b\x78\x01", 3),  // a group has no end
      std::string("\x7b\x74", 2),      // another group ends
      std::string("\x7e\x00", 2),      // no type
      std::string(500, '\x7b'),        // groups in groups
  };
  for (const std::string& bytes : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(bytes).status()))
        << testing::PrintToString(bytes);
    v1::GatherStreamResponse response;
    EXPECT_FALSE(response.ParseFromString(bytes))
        << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace engram

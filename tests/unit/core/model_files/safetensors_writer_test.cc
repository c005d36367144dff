#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/safetensors.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      std::vector<TensorSpec> specs,
      std::map<std::string, std::string> metadata = {}) {
    return SafetensorsWriter::Create(path_, std::move(specs),
                                     std::move(metadata));
  }

  TempDir dir_;
  const std::string path_ = dir_.File("out.safetensors");
};

TEST_F(SafetensorsWriterTest, ReadsBackWhatWasWrittenInAnyPieces) {
  const std::string data = "abcdefghijkl";
  for (const size_t piece : {1, 5, 12}) {
    auto writer = Create({{"z", "U8", {4}},
                          {"none", "F32", {0, 3}},
                          {"a \"quoted\" \xC3\xA9", "I64", {1}}},
                         {{"k", "v"}});
    ASSERT_THAT(writer, IsOk());
    for (size_t at = 0; at < data.size(); at += piece) {
      ASSERT_THAT((*writer)->Append(Bytes(data.substr(at, piece))), IsOk());
    }
    ASSERT_THAT((*writer)->Finish(), IsOk());

    const auto file = SafetensorsFile::Open(path_);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(file->metadata(), UnorderedElementsAre(Pair("k", "v")));
    ASSERT_EQ(file->tensors().size(), 3U);
    EXPECT_THAT(*CopyTensor<char>(*file->Find("z")),
                ElementsAre('a', 'b', 'c', 'd'));
    const auto last = file->Find("a \"quoted\" \xC3\xA9");
    ASSERT_THAT(last, IsOk());
    EXPECT_THAT(*CopyTensor<int64_t>(*last),
                ElementsAre(0x6C6B6A6968676665));  // "efghijkl"
  }
  EXPECT_THAT(dir_.List(), ElementsAre("out.safetensors"));
}

TEST_F(SafetensorsWriterTest, DataBeginsAtAMultipleOf8) {
  for (size_t length = 1; length < 10; ++length) {
    auto writer = Create({{std::string(length, 'n'), "U8", {0}}});
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Finish(), IsOk());
    EXPECT_EQ(test::ReadAll(path_).size() % 8, 0U);
  }
}

TEST_F(SafetensorsWriterTest, LargeDataPassesTheBuffer) {
  const size_t size = (3U << 20) + 5;
  std::vector<std::byte> data(size);
  for (size_t i = 0; i < size; ++i) data[i] = std::byte(i * 7 >> 3);
  auto writer = Create({{"t", "U8", {size}}});
  ASSERT_THAT(writer, IsOk());
  const absl::Span<const std::byte> all = data;
  ASSERT_THAT((*writer)->Append(all.first(100)), IsOk());
  ASSERT_THAT((*writer)->Append(all.subspan(100, 2 << 20)), IsOk());
  ASSERT_THAT((*writer)->Append(all.subspan(100 + (2 << 20))), IsOk());
  ASSERT_THAT((*writer)->Finish(), IsOk());
  const auto file = SafetensorsFile::Open(path_);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(*CopyTensor<std::byte>(*file->Find("t")), data);
}

TEST_F(SafetensorsWriterTest, UnfinishedFileLeavesNothing) {
  {
    auto writer = Create({{"t", "U8", {4}}});
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Append(Bytes("abcd")), IsOk());
    // Not under its name before Finish.
    EXPECT_THAT(SafetensorsFile::Open(path_),
                IsError(absl::StatusCode::kNotFound, HasSubstr(path_)));
  }
  EXPECT_THAT(dir_.List(), IsEmpty());
}

TEST_F(SafetensorsWriterTest, UnfinishedFileLeavesTheOldOne) {
  dir_.Write("out.safetensors", "old");
  { ASSERT_THAT(Create({{"t", "U8", {4}}}), IsOk()); }
  EXPECT_EQ(test::ReadAll(path_), "old");
  EXPECT_THAT(dir_.List(), ElementsAre("out.safetensors"));
}

TEST_F(SafetensorsWriterTest, TooFewBytes) {
  auto writer = Create({{"t", "U8", {4}}});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT((*writer)->Append(Bytes("abc")), IsOk());
  EXPECT_THAT((*writer)->Finish(),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("3 bytes were written, its tensors hold 4")));
}

TEST_F(SafetensorsWriterTest, TooManyBytes) {
  auto writer = Create({{"t", "U8", {4}}});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT((*writer)->Append(Bytes("abc")), IsOk());
  EXPECT_THAT((*writer)->Append(Bytes("de")),
              IsError(absl::StatusCode::kOutOfRange,
                      HasSubstr("3 bytes and 2 more, its tensors hold 4")));
}

TEST_F(SafetensorsWriterTest, FinishedIsFinished) {
  auto writer = Create({});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT((*writer)->Finish(), IsOk());
  EXPECT_THAT((*writer)->Finish(),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("finished already")));
  EXPECT_THAT((*writer)->Append({}),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("finished already")));
}

TEST_F(SafetensorsWriterTest, BadSpecsNameTheTensor) {
  const uint64_t huge = uint64_t{1} << 63;
  EXPECT_THAT(Create({{"a", "U8", {1}}, {"a", "U8", {1}}}),
              IsError(kInvalid, HasSubstr("'a' stands twice")));
  EXPECT_THAT(Create({{"a", "Q8", {1}}}),
              IsError(kInvalid, AllOf(HasSubstr("'a'"), HasSubstr("'Q8'"))));
  EXPECT_THAT(Create({{"a", "U8", {huge, 2}}}),
              IsError(kInvalid, HasSubstr("more than 2^64 elements")));
  EXPECT_THAT(Create({{"a", "F32", {huge}}}),
              IsError(kInvalid, HasSubstr("more than 2^64 bytes")));
  EXPECT_THAT(Create({{"a", "U8", {huge}}, {"b", "U8", {huge}}}),
              IsError(kInvalid, HasSubstr("'b' ends above 2^64 bytes")));
  EXPECT_THAT(Create({{"__metadata__", "U8", {1}}}),
              IsError(kInvalid, HasSubstr("not a name")));
  EXPECT_THAT(Create({{"\xff", "U8", {1}}}),
              IsError(kInvalid, HasSubstr("not a name")));
  EXPECT_THAT(Create({}, {{"k", "\xff"}}),
              IsError(kInvalid, HasSubstr("'k' is not UTF-8")));
  EXPECT_THAT(Create({{"a", "U8", std::vector<uint64_t>(65, 1)}}),
              IsError(kInvalid, HasSubstr("65 dimensions, the limit is 64")));
  EXPECT_THAT(dir_.List(), IsEmpty());
}

TEST_F(SafetensorsWriterTest, DirectoryThatIsNotThere) {
  EXPECT_THAT(SafetensorsWriter::Create(dir_.File("no/out"), {}),
              IsError(absl::StatusCode::kNotFound, HasSubstr("no/out")));
}

}  // namespace
}  // namespace engram

#include "core/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/safetensors_header.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::SafetensorsBytes;
using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<SafetensorsFile> OpenBytes(const std::string& bytes) {
    return SafetensorsFile::Open(dir_.Write("a.safetensors", bytes));
  }
  absl::StatusOr<SafetensorsFile> Open(absl::string_view header,
                                       size_t data_bytes) {
    return OpenBytes(SafetensorsBytes(header, std::string(data_bytes, '\1')));
  }

  TempDir dir_;
};

// One entry of a header.
std::string Entry(absl::string_view name, absl::string_view dtype,
                  absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype,
                      "\",\"shape\":", shape, ",\"data_offsets\":", offsets,
                      "}");
}

TEST_F(SafetensorsTest, ReadsTensorsAndMetadata) {
  const auto file = OpenBytes(SafetensorsBytes(
      absl::StrCat("{\"__metadata__\":{\"format\":\"pt\"},",
                   Entry("b", "I32", "[2]", "[3,11]"), ",",
                   Entry("a", "U8", "[3,1]", "[0,3]"), ",",
                   Entry("empty", "F64", "[0,7]", "[3,3]"), "}   "),
      absl::string_view("abc\1\0\0\0\xff\xff\xff\xff", 11)));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->metadata(), UnorderedElementsAre(Pair("format", "pt")));
  EXPECT_EQ(file->tensors().size(), 3U);

  const auto b = file->Find("b");
  ASSERT_THAT(b, IsOk());
  EXPECT_EQ(b->dtype, "I32");
  EXPECT_THAT(b->shape, ElementsAre(2));
  const auto values = CopyTensor<int32_t>(*b);
  ASSERT_THAT(values, IsOk());
  EXPECT_THAT(*values, ElementsAre(1, -1));

  const auto a = CopyTensor<uint8_t>(file->tensors().at("a"));
  ASSERT_THAT(a, IsOk());
  EXPECT_THAT(*a, ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(CopyTensor<uint16_t>(file->tensors().at("a")),
              IsError(kInvalid, HasSubstr("not of 2-byte elements")));

  const auto empty = CopyTensor<double>(file->tensors().at("empty"));
  ASSERT_THAT(empty, IsOk());
  EXPECT_TRUE(empty->empty());
}

TEST_F(SafetensorsTest, FileWithoutTensorsIsEmpty) {
  const auto file = Open("{}", 0);
  ASSERT_THAT(file, IsOk());
  EXPECT_TRUE(file->tensors().empty());
}

TEST_F(SafetensorsTest, FindNamesFileAndTensor) {
  const auto file = Open("{}", 0);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(
      file->Find("layers.1.x"),
      IsError(absl::StatusCode::kNotFound,
              AllOf(HasSubstr("a.safetensors"), HasSubstr("'layers.1.x'"))));
}

TEST_F(SafetensorsTest, UnknownDtypeIsAnErrorOnlyWhenAskedFor) {
  const auto file =
      Open(absl::StrCat("{", Entry("new", "F4", "[3]", "[0,2]"), ",",
                        Entry("old", "BF16", "[1]", "[2,4]"), "}"),
           4);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->Find("old"), IsOk());
  EXPECT_THAT(file->Find("new"),
              IsError(kInvalid, AllOf(HasSubstr("'new'"), HasSubstr("'F4'"))));
}

TEST_F(SafetensorsTest, KnowsTheSizesOfDtypes) {
  for (const char* name : {"F8_E4M3", "F8_E8M0", "F8_E5M2", "I8", "U8", "BOOL"})
    EXPECT_EQ(DtypeBytes(name), 1U) << name;
  for (const char* name : {"BF16", "F16", "I16", "U16"})
    EXPECT_EQ(DtypeBytes(name), 2U) << name;
  for (const char* name : {"F32", "I32", "U32"})
    EXPECT_EQ(DtypeBytes(name), 4U) << name;
  for (const char* name : {"F64", "I64", "U64"})
    EXPECT_EQ(DtypeBytes(name), 8U) << name;
  EXPECT_EQ(DtypeBytes("F4"), 0U);
  EXPECT_EQ(DtypeBytes(""), 0U);
}

TEST_F(SafetensorsTest, MissingFileIsNamed) {
  EXPECT_THAT(SafetensorsFile::Open(dir_.File("none")),
              IsError(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

TEST_F(SafetensorsTest, DirectoryIsNoFile) {
  EXPECT_THAT(SafetensorsFile::Open(dir_.path()),
              IsError(kInvalid, HasSubstr("not a regular file")));
}

TEST_F(SafetensorsTest, FileTooShortForAHeader) {
  for (const size_t size : {0, 1, 7}) {
    EXPECT_THAT(OpenBytes(std::string(size, '\0')),
                IsError(kInvalid,
                        AllOf(HasSubstr("a.safetensors"),
                              HasSubstr(absl::StrCat(size, " bytes is too")))));
  }
}

TEST_F(SafetensorsTest, HeaderPastTheEnd) {
  std::string bytes = SafetensorsBytes("{}", "");
  bytes[0] = 3;
  EXPECT_THAT(OpenBytes(bytes),
              IsError(kInvalid, HasSubstr("header of 3 bytes passes the end of "
                                          "a file of 10 bytes")));
}

TEST_F(SafetensorsTest, HeaderAboveTheLimitIsNotRead) {
  // A sparse file that is long enough: only the limit can refuse it.
  const std::string path = dir_.Write(
      "big.safetensors", absl::string_view("\x01\xe1\xf5\x05\0\0\0\0", 8));
  ASSERT_EQ(truncate(path.c_str(), 200'000'000), 0);
  EXPECT_THAT(SafetensorsFile::Open(path),
              IsError(kInvalid, HasSubstr("header of 100000001 bytes, the "
                                          "limit is 100000000")));
  EXPECT_THAT(OpenBytes(std::string(8, '\xff')),
              IsError(kInvalid, HasSubstr("header of 18446744073709551615")));
}

TEST_F(SafetensorsTest, TruncatedData) {
  EXPECT_THAT(Open(absl::StrCat("{", Entry("t", "U8", "[8]", "[0,8]"), "}"), 7),
              IsError(kInvalid, AllOf(HasSubstr("a.safetensors"),
                                      HasSubstr("'t' ends at byte 8"),
                                      HasSubstr("truncated"))));
}

TEST_F(SafetensorsTest, TruncatedWhileMapped) {
  const std::string path = dir_.Write(
      "t.safetensors",
      SafetensorsBytes(
          absl::StrCat("{", Entry("t", "U8", "[100000]", "[0,100000]"), "}"),
          std::string(100000, 'x')));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_THAT(file, IsOk());
  const auto tensor = file->Find("t");
  ASSERT_THAT(tensor, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  EXPECT_THAT(CopyTensor<uint8_t>(*tensor),
              IsError(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr(path), HasSubstr("truncated"))));
}

TEST_F(SafetensorsTest, HeaderTruncatedBeforeItIsParsed) {
  const std::string path =
      dir_.Write("t.safetensors", SafetensorsBytes("{}", ""));
  auto mapped = MappedFile::Open(path);
  ASSERT_THAT(mapped, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_THAT(SafetensorsFile::Parse(*mapped),
              IsError(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

struct BadHeader {
  const char* what;
  std::string header;
  size_t data_bytes;
  std::vector<std::string> message;
};

std::string Tensors(const std::vector<std::string>& entries) {
  std::string text = "{";
  for (const std::string& entry : entries) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", entry);
  }
  return text + "}";
}

std::vector<BadHeader> BadHeaders() {
  const std::string good = Entry("a", "U8", "[4]", "[0,4]");
  return {
      {"overlapping",
       Tensors({good, Entry("b", "U8", "[4]", "[3,7]")}),
       7,
       {"'b' begins at byte 3", "overlaps the one before, which ends at 4"}},
      {"the same bytes twice",
       Tensors({good, Entry("b", "U8", "[4]", "[0,4]")}),
       4,
       {"'b' begins at byte 0 and overlaps"}},
      {"gap",
       Tensors({good, Entry("b", "U8", "[4]", "[5,9]")}),
       9,
       {"'b' begins at byte 5 and leaves a gap after 4"}},
      {"gap at the start",
       Tensors({Entry("b", "U8", "[4]", "[1,5]")}),
       5,
       {"'b' begins at byte 1 and leaves a gap after 0"}},
      {"trailing bytes", Tensors({good}), 5, {"end at byte 4 of 5"}},
      {"bytes without tensors", "{}", 1, {"end at byte 0 of 1"}},
      {"descending offsets",
       Tensors({Entry("a", "U8", "[4]", "[4,0]")}),
       4,
       {"'a'", "descend from 4 to 0"}},
      {"past the end",
       Tensors({Entry("a", "U8", "[9]", "[0,9]")}),
       4,
       {"'a' ends at byte 9 of 4 bytes"}},
      {"shape is not the bytes",
       Tensors({Entry("a", "F32", "[2,2]", "[0,15]")}),
       15,
       {"'a'", "[2, 2] of F32 makes 16 bytes", "span 15"}},
      {"2^63 elements",
       Tensors({Entry("a", "BF16", "[9223372036854775808]", "[0,0]")}),
       0,
       {"'a'", "[9223372036854775808]", "more than 2^64 bytes"}},
      {"product above 2^64",
       Tensors({Entry("a", "U8", "[4294967296,4294967296]", "[0,0]")}),
       0,
       {"'a'", "more than 2^64 elements"}},
      {"product above 2^64 of an unknown dtype",
       Tensors({Entry("a", "Q1", "[4294967296,4294967296]", "[0,0]")}),
       0,
       {"'a'", "more than 2^64 elements"}},
      {"size above 2^64",
       Tensors({Entry("a", "U8", "[18446744073709551616]", "[0,0]")}),
       0,
       {"'a'", "'18446744073709551616' (not a whole number below 2^64)"}},
      {"negative size",
       Tensors({Entry("a", "U8", "[-1]", "[0,0]")}),
       0,
       {"'a'", "negative number -1"}},
      {"fraction",
       Tensors({Entry("a", "U8", "[1.5]", "[0,1]")}),
       1,
       {"'a'", "'1.5'"}},
      {"too many dimensions",
       Tensors({Entry("a", "U8",
                      absl::StrCat(
                          "[1",
                          [] {
                            std::string ones;
                            for (int i = 0; i < 64; ++i) ones += ",1";
                            return ones;
                          }(),
                          "]"),
                      "[0,1]")}),
       1,
       {"'a'", "more than 64 numbers in shape"}},
      {"three offsets",
       Tensors({Entry("a", "U8", "[1]", "[0,1,2]")}),
       1,
       {"'a'", "more than 2 numbers in data_offsets"}},
      {"one offset",
       Tensors({Entry("a", "U8", "[1]", "[0]")}),
       1,
       {"'a'", "data_offsets has 1 numbers of 2"}},
      {"duplicate name",
       Tensors({good, Entry("a", "U8", "[1]", "[4,5]")}),
       5,
       {"'a' stands twice"}},
      {"duplicate metadata",
       "{\"__metadata__\":{},\"__metadata__\":{}}",
       0,
       {"'__metadata__' stands twice"}},
      {"duplicate metadata key",
       "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}",
       0,
       {"metadata 'k' stands twice"}},
      {"duplicate field",
       "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}",
       0,
       {"'a'", "field dtype stands twice"}},
      {"missing field",
       "{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}",
       0,
       {"'a'", "needs dtype, shape and data_offsets"}},
      {"unknown field",
       "{\"a\":{\"stride\":[1]}}",
       0,
       {"'a'", "unknown field 'stride'"}},
      {"dtype is a number",
       "{\"a\":{\"dtype\":8}}",
       0,
       {"'a'", "unexpected number"}},
      {"tensor is a list", "{\"a\":[]}", 0, {"'a'", "unexpected array"}},
      {"tensor is null", "{\"a\":null}", 0, {"'a'", "unexpected null"}},
      {"shape in a shape",
       "{\"a\":{\"shape\":[[1]]}}",
       0,
       {"'a'", "unexpected array"}},
      {"metadata is a string",
       "{\"__metadata__\":\"pt\"}",
       0,
       {"unexpected string"}},
      {"header is a list", "[]", 0, {"not an object: array"}},
      {"header is a number", "12", 0, {"not an object: number"}},
      {"not JSON", "{\"a\":", 0, {"not JSON", "parse error"}},
      {"empty header", "", 0, {"not JSON"}},
      {"zeros behind", std::string("{}\0\0", 4), 0, {"not JSON"}},
      {"not UTF-8", "{\"\xff\":{}}", 0, {"not JSON"}},
  };
}

TEST_F(SafetensorsTest, BadHeadersAreRefusedWithAClearMessage) {
  for (const BadHeader& bad : BadHeaders()) {
    SCOPED_TRACE(bad.what);
    const auto file = Open(bad.header, bad.data_bytes);
    EXPECT_THAT(file, IsError(kInvalid, HasSubstr("a.safetensors: ")));
    for (const std::string& part : bad.message) {
      EXPECT_THAT(file, IsError(kInvalid, HasSubstr(part)));
    }
  }
}

TEST_F(SafetensorsTest, HostileDepthNeedsNoStack) {
  const size_t depth = 10'000'000;
  for (const std::string& header :
       {std::string(depth, '['),
        std::string("{\"a\":") + std::string(depth, '['),
        "{\"a\":{\"shape\":" + std::string(depth, '[')}) {
    EXPECT_THAT(Open(header, 0), IsError(kInvalid, HasSubstr("array")));
  }
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(Open(objects, 0), IsError(kInvalid, HasSubstr("'a'")));
}

TEST_F(SafetensorsTest, MessagesOfHostileNamesStayShort) {
  const std::string name(1'000'000, 'n');
  const auto file = Open(Tensors({Entry(name, "U8", "[1]", "[0,2]")}), 2);
  EXPECT_THAT(file, IsError(kInvalid, HasSubstr("nnn...'")));
  EXPECT_LT(file.status().message().size(), 1000U);
  const auto unterminated = Open("{\"" + name, 0);
  EXPECT_THAT(unterminated, IsError(kInvalid, HasSubstr("not JSON")));
  EXPECT_LT(unterminated.status().message().size(), 1000U);
}

// Every prefix of a good file is refused, never crashed on.
TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string bytes =
      SafetensorsBytes(Tensors({Entry("a", "U8", "[4]", "[0,4]"),
                                Entry("b", "F32", "[1]", "[4,8]")}),
                       "12345678");
  ASSERT_THAT(OpenBytes(bytes), IsOk());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(OpenBytes(bytes.substr(0, size)),
                IsError(kInvalid, HasSubstr("a.safetensors")))
        << size;
  }
}

}  // namespace
}  // namespace engram

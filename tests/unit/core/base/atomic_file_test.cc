#include "core/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(AtomicFileTest, ReplacesTheOldFileAtOnce) {
  TempDir dir;
  const std::string path = dir.Write("a", "old");
  const auto file = AtomicFile::Create(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->Append(Bytes("ne")), IsOk());
  ASSERT_THAT((*file)->Append(Bytes("w")), IsOk());
  EXPECT_EQ(test::ReadAll(path), "old");
  ASSERT_THAT((*file)->Commit(), IsOk());
  EXPECT_EQ(test::ReadAll(path), "new");
  EXPECT_THAT(dir.List(), ElementsAre("a"));
}

TEST(AtomicFileTest, DroppedLeavesNoTrace) {
  TempDir dir;
  {
    const auto file = AtomicFile::Create(dir.File("a"));
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT((*file)->Append(Bytes("x")), IsOk());
    EXPECT_EQ(dir.List().size(), 1U);  // under a temporary name
  }
  EXPECT_TRUE(dir.List().empty());
}

TEST(AtomicFileTest, TwoWritersOfOneFileDoNotMix) {
  TempDir dir;
  const auto one = AtomicFile::Create(dir.File("a"));
  const auto two = AtomicFile::Create(dir.File("a"));
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  ASSERT_THAT((*one)->Append(Bytes("11")), IsOk());
  ASSERT_THAT((*two)->Append(Bytes("2")), IsOk());
  ASSERT_THAT((*one)->Commit(), IsOk());
  EXPECT_EQ(test::ReadAll(dir.File("a")), "11");
  ASSERT_THAT((*two)->Commit(), IsOk());
  EXPECT_EQ(test::ReadAll(dir.File("a")), "2");
}

TEST(AtomicFileTest, ErrorsNameThePath) {
  TempDir dir;
  EXPECT_THAT(WriteFileAtomically(dir.File("no/a"), "x"),
              IsError(absl::StatusCode::kNotFound, HasSubstr("/no/a")));
  ASSERT_EQ(mkdir(dir.File("sub").c_str(), 0755), 0);
  const absl::Status onto_directory = WriteFileAtomically(dir.File("sub"), "x");
  EXPECT_FALSE(onto_directory.ok());
  EXPECT_THAT(std::string(onto_directory.message()), HasSubstr("/sub"));
  EXPECT_THAT(dir.List(), ElementsAre("sub"));
}

}  // namespace
}  // namespace engram

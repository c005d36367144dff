#include "engram_client/ctl/staging_directory.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {
namespace {

using test::IsError;
using testing::HasSubstr;
namespace fs = std::filesystem;
using absl::StatusCode;
using Existing = StagingDirectory::Existing;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t EntriesOf(const std::string& path) {
  return std::distance(fs::directory_iterator(path), {});
}

class StagingDirectoryTest : public testing::Test {
 protected:
  std::unique_ptr<StagingDirectory> Create(Existing existing) {
    auto staging = StagingDirectory::Create(out_, existing);
    EXPECT_TRUE(staging.ok()) << staging.status();
    return *std::move(staging);
  }

  test::TempDir dir_;
  const std::string out_ = dir_.File("a/b");
};

TEST_F(StagingDirectoryTest, NothingShowsBeforePublish) {
  const auto staging = Create(Existing::kRefuse);
  Write(staging->PathOf("file"), "text");
  EXPECT_FALSE(fs::exists(out_ + "/file"));
  ASSERT_TRUE(staging->Publish().ok());
  EXPECT_EQ(Read(out_ + "/file"), "text");
}

TEST_F(StagingDirectoryTest, PublishedFilesAreAllThatIsLeft) {
  {
    const auto staging = Create(Existing::kRefuse);
    Write(staging->PathOf("file"), "text");
    ASSERT_TRUE(staging->Publish().ok());
  }
  EXPECT_EQ(EntriesOf(out_), 1);
}

TEST_F(StagingDirectoryTest, WithoutPublishNothingIsLeft) {
  Write(Create(Existing::kRefuse)->PathOf("file"), "text");
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(StagingDirectoryTest, ADirectoryThatWasThereStays) {
  fs::create_directories(out_);
  Write(Create(Existing::kRefuse)->PathOf("file"), "text");
  EXPECT_TRUE(fs::exists(out_));
  EXPECT_EQ(EntriesOf(out_), 0);
}

TEST_F(StagingDirectoryTest, RefusesOneThatIsNotEmpty) {
  fs::create_directories(out_);
  Write(out_ + "/other", "mine");
  EXPECT_THAT(StagingDirectory::Create(out_, Existing::kRefuse).status(),
              IsError(StatusCode::kAlreadyExists, HasSubstr("is not empty")));
  EXPECT_EQ(EntriesOf(out_), 1);
}

TEST_F(StagingDirectoryTest, ReplaceLeavesOtherFilesAlone) {
  fs::create_directories(out_);
  Write(out_ + "/other", "mine");
  Write(out_ + "/file", "old");
  Write(out_ + "/stale", "old");
  const auto staging = Create(Existing::kReplace);
  Write(staging->PathOf("file"), "new");
  EXPECT_EQ(Read(out_ + "/file"), "old");
  ASSERT_TRUE(staging->RemoveOld("stale").ok());
  ASSERT_TRUE(staging->RemoveOld("never-there").ok());
  ASSERT_TRUE(staging->Publish().ok());
  EXPECT_EQ(Read(out_ + "/file"), "new");
  EXPECT_EQ(Read(out_ + "/other"), "mine");
  EXPECT_FALSE(fs::exists(out_ + "/stale"));
}

TEST_F(StagingDirectoryTest, NamesThePathThatCannotBeMade) {
  Write(dir_.File("a"), "a file");
  EXPECT_THAT(StagingDirectory::Create(out_, Existing::kRefuse).status(),
              IsError(StatusCode::kFailedPrecondition, HasSubstr(out_)));
}

TEST_F(StagingDirectoryTest, KnowsTheFreeSpace) {
  const absl::StatusOr<uint64_t> free_bytes =
      Create(Existing::kRefuse)->FreeBytes();
  ASSERT_TRUE(free_bytes.ok()) << free_bytes.status();
  EXPECT_GT(*free_bytes, 0);
}

}  // namespace
}  // namespace engram::ctl

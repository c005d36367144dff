#include "core/membership/file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/membership/member_file.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileSourceTest : public ::testing::Test {
 protected:
  FileSourceTest() {
    auto source = MemberSource::Parse(absl::StrCat("file:", path_));
    EXPECT_THAT(source, IsOk());
    source_ = *std::move(source);
  }
  absl::StatusOr<std::vector<Member>> Read() {
    return source_->Read(absl::Now() + absl::Seconds(10));
  }

  const TempDir dir_;
  const std::string path_ = dir_.File("members");
  std::unique_ptr<MemberSource> source_;
};

TEST_F(FileSourceTest, SeesEveryChange) {
  EXPECT_TRUE(source_->absence_is_departure());
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kNotFound, HasSubstr(path_)));
  dir_.Write("members", "b h:2 3\na h:1\n");
  EXPECT_THAT(*Read(), ElementsAre(Member{"a", "h:1"}, Member{"b", "h:2", 3}));
  dir_.Write("members", "c h:3\n");
  EXPECT_THAT(*Read(), ElementsAre(Member{"c", "h:3"}));
  std::filesystem::rename(dir_.Write("new", "d h:4\n"), path_);
  EXPECT_THAT(*Read(), ElementsAre(Member{"d", "h:4"}));
  std::filesystem::remove(path_);
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kNotFound, HasSubstr(path_)));
}

TEST_F(FileSourceTest, NamesFileAndLine) {
  dir_.Write("members", "a h:1\nb h\n");
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kInvalidArgument,
                              AllOf(HasSubstr(path_), HasSubstr("line 2"))));
  dir_.Write("members", "");
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kInvalidArgument,
                              AllOf(HasSubstr(path_), HasSubstr("no server"))));
}

TEST_F(FileSourceTest, RefusesWhatIsNoSmallFile) {
  dir_.Write("members", std::string(kMaxMemberFileBytes + 1, '\n'));
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kInvalidArgument,
                              HasSubstr("1048576")));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kInvalidArgument,
                              HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace engram

#include "core/base/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsError;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReadFileTest, ReadsUpToTheLimit) {
  test::TempDir dir;
  EXPECT_EQ(*ReadFile(dir.Write("a", "12345"), 5), "12345");
  EXPECT_EQ(*ReadFile(dir.Write("b", ""), 0), "");
  EXPECT_THAT(
      ReadFile(dir.File("a"), 4),
      IsError(absl::StatusCode::kInvalidArgument,
              AllOf(HasSubstr("/a has 5 bytes"), HasSubstr("the limit is 4"))));
  EXPECT_THAT(ReadFile(dir.File("none"), 4),
              IsError(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

}  // namespace
}  // namespace engram

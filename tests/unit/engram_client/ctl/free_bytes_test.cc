#include "engram_client/ctl/free_bytes.h"

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {
namespace {

TEST(FreeBytesTest, OfADirectoryThatIsThere) {
  const test::TempDir dir;
  const auto bytes = FreeBytesIn(dir.path());
  ASSERT_THAT(bytes, test::IsOk());
  EXPECT_GT(*bytes, 0u);
}

TEST(FreeBytesTest, NamesOneThatIsNot) {
  const test::TempDir dir;
  EXPECT_THAT(FreeBytesIn(dir.File("none")),
              test::IsError(absl::StatusCode::kNotFound,
                            ::testing::HasSubstr(dir.File("none"))));
}

}  // namespace
}  // namespace engram::ctl

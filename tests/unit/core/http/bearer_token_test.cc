#include "core/http/bearer_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/http/open_http_reader.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(BearerTokenTest, FollowsTheFile) {
  const TempDir dir;
  const std::string path = dir.Write("token", "  first\n");
  const auto token = BearerToken::Open(path);
  ASSERT_THAT(token, IsOk());
  EXPECT_EQ((*token)->Current(), "first");
  dir.Write("token", "the_second");
  EXPECT_EQ((*token)->Current(), "the_second");
  // As Kubernetes does it: another file of the same size under the name.
  dir.Write("next", "TOKEN_NO_3");
  std::filesystem::rename(dir.File("next"), path);
  EXPECT_EQ((*token)->Current(), "TOKEN_NO_3");
}

TEST(BearerTokenTest, StaysWhatItWasWhileTheFileIsNotSound) {
  const TempDir dir;
  const std::string path = dir.Write("token", "first");
  const auto token = BearerToken::Open(path);
  ASSERT_THAT(token, IsOk());
  std::filesystem::remove(path);
  EXPECT_EQ((*token)->Current(), "first");
  dir.Write("token", "two words");
  EXPECT_EQ((*token)->Current(), "first");
  dir.Write("token", "second");
  EXPECT_EQ((*token)->Current(), "second");
}

TEST(BearerTokenTest, RefusesWhatIsNoTokenAndDoesNotRepeatIt) {
  const TempDir dir;
  for (const char* text : {"", " \n", "hunter2 x", "hunter2\r\nHost: x",
                           "hunter2\x7F", "hunter2\xC3\xA9"}) {
    const std::string path = dir.Write("token", text);
    EXPECT_THAT(
        BearerToken::Open(path),
        IsError(kInvalid, AllOf(HasSubstr(path), Not(HasSubstr("hunter2")))));
  }
  EXPECT_THAT(BearerToken::Open(dir.File("none")),
              IsError(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST(BearerTokenTest, IsNotSentOverPlainHttpToOtherMachines) {
  const TempDir dir;
  const HttpAccess access{.token_file = dir.Write("token", "hunter2")};
  EXPECT_THAT(OpenHttpReader(*ParseHttpFolder("http://10.0.0.1/x"), access),
              IsError(kInvalid, HasSubstr("http://10.0.0.1/x")));
  EXPECT_THAT(OpenHttpReader(*ParseHttpFolder("http://10.0.0.1/x"), {}),
              IsOk());
  EXPECT_THAT(OpenHttpReader(*ParseHttpFolder("https://10.0.0.1/x"), access),
              IsOk());
  EXPECT_THAT(OpenHttpReader(*ParseHttpFolder("http://127.0.0.1/x"), access),
              IsOk());
}

}  // namespace
}  // namespace engram

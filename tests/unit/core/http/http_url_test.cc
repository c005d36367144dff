#include "core/http/http_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(HttpUrlTest, KnowsUrlsFromPaths) {
  EXPECT_TRUE(IsHttpUrl("https://host/path"));
  EXPECT_TRUE(IsHttpUrl("HTTP://host"));
  for (const char* path : {"", "/https://x", "models/v41", "file:///x"}) {
    EXPECT_FALSE(IsHttpUrl(path)) << path;
  }
}

TEST(HttpUrlTest, EntriesOfAFolder) {
  const auto folder = ParseHttpFolder("https://hub.example:8443/a/b%20c//");
  ASSERT_THAT(folder, IsOk());
  EXPECT_EQ(folder->UrlOf("config.json"),
            "https://hub.example:8443/a/b%20c/config.json");
  EXPECT_EQ(folder->UrlOf("a b?#/\xC3%"),
            "https://hub.example:8443/a/b%20c/a%20b%3F%23%2F%C3%25");
  EXPECT_TRUE(folder->is_secure);
  EXPECT_FALSE(folder->is_loopback);
}

TEST(HttpUrlTest, KnowsThisMachine) {
  for (const char* url : {"http://127.0.0.1:80/x", "http://localhost/x",
                          "http://[::1]:8080/x", "http://127.1.2.3"}) {
    EXPECT_TRUE(ParseHttpFolder(url)->is_loopback) << url;
  }
  for (const char* url : {"http://127.0.0.1.example/x", "http://10.0.0.1/x",
                          "http://localhost.example/x"}) {
    EXPECT_FALSE(ParseHttpFolder(url)->is_loopback) << url;
  }
}

TEST(HttpUrlTest, RefusesSecretsAndDoesNotRepeatThem) {
  for (const char* url :
       {"https://user:hunter2@host/x", "https://hunter2@host/x",
        "https://host/x?sig=hunter2", "https://host/x#hunter2"}) {
    EXPECT_THAT(ParseHttpFolder(url),
                IsError(kInvalid, AllOf(HasSubstr("token file"),
                                        Not(HasSubstr("hunter2")))));
  }
  for (const char* url : {"", "https://", "ftp://host/x", "https://a b/"}) {
    EXPECT_THAT(ParseHttpFolder(url), IsError(kInvalid, _)) << url;
  }
}

}  // namespace
}  // namespace engram

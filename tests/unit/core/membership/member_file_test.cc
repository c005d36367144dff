#include "core/membership/member_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(MemberFileTest, ReadsServersByName) {
  const auto members = ParseMemberFile(
      "# of the first rack\n"
      "t1 10.0.0.2:7100 2.5\n"
      "\n"
      "  t0\t10.0.0.1:7100   # the old one\r\n"
      "t2 unix:/run/t2.sock 1e-3");
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(*members, ElementsAre(Member{"t0", "10.0.0.1:7100", 1.0},
                                    Member{"t1", "10.0.0.2:7100", 2.5},
                                    Member{"t2", "unix:/run/t2.sock", 1e-3}));
}

TEST(MemberFileTest, NamesTheLine) {
  EXPECT_THAT(ParseMemberFile("a h:1\nb\n"),
              IsError(kInvalid, AllOf(HasSubstr("line 2"),
                                      HasSubstr("NAME ADDRESS [CAPACITY]"))));
  EXPECT_THAT(ParseMemberFile("a h:1 1 2"),
              IsError(kInvalid, HasSubstr("line 1: 4 words")));
  EXPECT_THAT(
      ParseMemberFile("\n\na=h:1 h:1"),
      IsError(kInvalid, AllOf(HasSubstr("line 3"), HasSubstr("\"a=h:1\""))));
  EXPECT_THAT(
      ParseMemberFile("a h"),
      IsError(kInvalid, AllOf(HasSubstr("line 1"), HasSubstr("no port"))));
  for (const char* capacity : {"0", "-1", "inf", "nan", "1e999", "x", "1x"}) {
    EXPECT_THAT(
        ParseMemberFile(absl::StrCat("a h:1 ", capacity)),
        IsError(kInvalid, HasSubstr(absl::StrCat("\"", capacity, "\""))));
  }
}

TEST(MemberFileTest, RefusesListsThatAreNone) {
  for (const char* text : {"", "\n \n", "# nobody"}) {
    EXPECT_THAT(ParseMemberFile(text),
                IsError(kInvalid, HasSubstr("no server")));
  }
  EXPECT_THAT(ParseMemberFile("a h:1\na h:2"),
              IsError(kInvalid, HasSubstr("two servers of one name, a")));
  EXPECT_THAT(ParseMemberFile("a h:1\nb h:1"),
              IsError(kInvalid, HasSubstr("two servers of one address, h:1")));
}

TEST(MemberFileTest, IsBounded) {
  std::string text;
  for (size_t i = 0; i < kMaxMembers; ++i) {
    absl::StrAppend(&text, "t", i, " h", i, ":1\n");
  }
  ASSERT_THAT(ParseMemberFile(text), IsOk());
  EXPECT_THAT(ParseMemberFile(text + "last last:1"),
              IsError(kInvalid, AllOf(HasSubstr("4097"), HasSubstr("4096"))));
  text.append(kMaxMemberFileBytes + 1 - text.size(), '#');
  EXPECT_THAT(
      ParseMemberFile(text),
      IsError(kInvalid, AllOf(HasSubstr("1048577"), HasSubstr("1048576"))));
}

}  // namespace
}  // namespace engram

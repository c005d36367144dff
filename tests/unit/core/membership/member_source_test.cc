#include "core/membership/member_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<std::vector<Member>> Read(absl::string_view spec) {
  auto source = MemberSource::Parse(spec);
  if (!source.ok()) return source.status();
  return (*source)->Read(absl::Now() + absl::Seconds(10));
}

TEST(MemberSourceTest, ReadsAStaticListByName) {
  const auto members = Read("static:t-1=unix:/run/t1.sock,t-0=10.0.0.1:9000");
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(*members, ElementsAre(Member{"t-0", "10.0.0.1:9000"},
                                    Member{"t-1", "unix:/run/t1.sock"}));
  EXPECT_TRUE((*MemberSource::Parse("static:a=h:1"))->absence_is_departure());
}

TEST(MemberSourceTest, NamesTheSchemesThatThereAre) {
  for (const char* spec :
       {"", "a=b:1", "srv:tables", "static", "Static:a=b:1"}) {
    EXPECT_THAT(
        MemberSource::Parse(spec),
        IsError(kInvalid, AllOf(HasSubstr(absl::StrCat("\"", spec, "\"")),
                                HasSubstr("static:"), HasSubstr("file:"),
                                HasSubstr("dns:"))));
  }
  EXPECT_THAT(MemberSource::Parse("file:"),
              IsError(kInvalid, HasSubstr("empty")));
}

TEST(MemberSourceTest, NamesTheBadEntry) {
  EXPECT_THAT(MemberSource::Parse("static:"),
              IsError(kInvalid, HasSubstr("NAME=ADDRESS")));
  EXPECT_THAT(MemberSource::Parse("static:a=h:1,"),
              IsError(kInvalid, HasSubstr("NAME=ADDRESS")));
  EXPECT_THAT(MemberSource::Parse("static:h:1"),
              IsError(kInvalid, HasSubstr("\"h:1\"")));
  EXPECT_THAT(MemberSource::Parse("static:=h:1"),
              IsError(kInvalid, HasSubstr("0 bytes")));
  EXPECT_THAT(MemberSource::Parse("static:a b=h:1"),
              IsError(kInvalid, HasSubstr("\"a b\"")));
  EXPECT_THAT(
      MemberSource::Parse("static:a=h"),
      IsError(kInvalid, AllOf(HasSubstr("member a"), HasSubstr("no port"))));
}

TEST(MemberSourceTest, RefusesTwoServersOfOneNameOrAddress) {
  EXPECT_THAT(MemberSource::Parse("static:a=h:1,a=h:2"),
              IsError(kInvalid, HasSubstr("two servers of one name, a")));
  EXPECT_THAT(MemberSource::Parse("static:a=h:1,b=h:1"),
              IsError(kInvalid, HasSubstr("two servers of one address, h:1")));
  EXPECT_THAT(MemberSource::Parse("static:a=h:0,b=h:0"), IsOk());
}

TEST(MemberTest, OwnNameHasToBeAmongThem) {
  const auto members = Read("static:a=h:1,b=h:2");
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(CheckIsMember(*members, "b"), IsOk());
  EXPECT_THAT(
      CheckIsMember(*members, "c"),
      IsError(kInvalid, AllOf(HasSubstr("server name c"), HasSubstr("a, b"))));
}

TEST(MemberTest, NamesAreThoseOfDns) {
  EXPECT_THAT(CheckServerName("T-0_a.b"), IsOk());
  EXPECT_THAT(CheckServerName(std::string(253, 'x')), IsOk());
  EXPECT_THAT(CheckServerName(std::string(254, 'x')),
              IsError(kInvalid, AllOf(HasSubstr("254"), HasSubstr("253"))));
  for (const char* name : {"", "a/b", "a:b", "\x80", "a b"}) {
    EXPECT_THAT(CheckServerName(name), IsError(kInvalid, HasSubstr(name)));
  }
}

TEST(MemberTest, LongListsAreCutInMessages) {
  std::vector<Member> members;
  for (int i = 10; i < 30; ++i) members.push_back({absl::StrCat("t", i)});
  EXPECT_THAT(NamesOf(members), HasSubstr("t24, t25 and 4 more"));
  members.resize(2);
  EXPECT_EQ(NamesOf(members), "t10, t11");
}

}  // namespace
}  // namespace engram

#include "table_server/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(MembershipTest, ParsesAStaticList) {
  const auto members =
      Membership::Parse("static:t-0=10.0.0.1:9000,t-1=unix:/run/t1.sock");
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT((*members)->Current(),
              ElementsAre(Member{"t-0", "10.0.0.1:9000"},
                          Member{"t-1", "unix:/run/t1.sock"}));
}

TEST(MembershipTest, OtherSchemesAreNamedAsUnsupported) {
  for (const char* spec : {"file:/etc/members", "dns:tables.ns", "", "a=b:1"}) {
    EXPECT_THAT(Membership::Parse(spec),
                IsError(absl::StatusCode::kUnimplemented,
                        AllOf(HasSubstr(spec), HasSubstr("static:"))));
  }
}

TEST(MembershipTest, NamesTheBadEntry) {
  EXPECT_THAT(Membership::Parse("static:"),
              IsError(kInvalid, HasSubstr("NAME=ADDRESS")));
  EXPECT_THAT(Membership::Parse("static:a=h:1,"),
              IsError(kInvalid, HasSubstr("NAME=ADDRESS")));
  EXPECT_THAT(Membership::Parse("static:h:1"),
              IsError(kInvalid, HasSubstr("\"h:1\"")));
  EXPECT_THAT(Membership::Parse("static:=h:1"),
              IsError(kInvalid, HasSubstr("0 bytes")));
  EXPECT_THAT(Membership::Parse("static:a b=h:1"),
              IsError(kInvalid, HasSubstr("\"a b\"")));
  EXPECT_THAT(
      Membership::Parse("static:a=h"),
      IsError(kInvalid, AllOf(HasSubstr("member a"), HasSubstr("no port"))));
}

TEST(MembershipTest, RefusesTwoServersOfOneNameOrAddress) {
  EXPECT_THAT(Membership::Parse("static:a=h:1,a=h:2"),
              IsError(kInvalid, HasSubstr("two servers of one name, a")));
  EXPECT_THAT(Membership::Parse("static:a=h:1,b=h:1"),
              IsError(kInvalid, HasSubstr("two servers of one address, h:1")));
  EXPECT_THAT(Membership::Parse("static:a=h:0,b=h:0"), IsOk());
}

TEST(MembershipTest, OwnNameHasToBeAmongThem) {
  const auto members = Membership::Parse("static:a=h:1,b=h:2");
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(CheckIsMember((*members)->Current(), "b"), IsOk());
  EXPECT_THAT(
      CheckIsMember((*members)->Current(), "c"),
      IsError(kInvalid, AllOf(HasSubstr("server name c"), HasSubstr("a, b"))));
}

}  // namespace
}  // namespace engram

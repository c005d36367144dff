#include "core/rpc/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(AddressTest, TakesHostsIpAddressesAndPaths) {
  for (const char* address :
       {"127.0.0.1:0", "localhost:65535", "tables-0.tables.ns.svc:9000",
        "[::1]:80", "0.0.0.0:7000", "unix:/tmp/a.sock", "unix:relative"}) {
    EXPECT_THAT(CheckAddress(address), IsOk()) << address;
  }
}

TEST(AddressTest, NamesWhatIsWrong) {
  EXPECT_THAT(CheckAddress(""), IsError(kInvalid, HasSubstr("no port")));
  EXPECT_THAT(CheckAddress("host"), IsError(kInvalid, HasSubstr("no port")));
  EXPECT_THAT(CheckAddress(":80"),
              IsError(kInvalid, HasSubstr("host is empty")));
  EXPECT_THAT(CheckAddress("h:"), IsError(kInvalid, HasSubstr("port \"\"")));
  EXPECT_THAT(CheckAddress("h:65536"), IsError(kInvalid, HasSubstr("65536")));
  EXPECT_THAT(CheckAddress("h:99999999999"),
              IsError(kInvalid, HasSubstr("h:")));
  EXPECT_THAT(CheckAddress("h:-1"), IsError(kInvalid, HasSubstr("-1")));
  EXPECT_THAT(CheckAddress("h:80x"), IsError(kInvalid, HasSubstr("80x")));
  EXPECT_THAT(CheckAddress("::1:80"), IsError(kInvalid, HasSubstr("::1:80")));
  EXPECT_THAT(CheckAddress("http://h:80"),
              IsError(kInvalid, HasSubstr("http://h:80")));
  EXPECT_THAT(CheckAddress("a b:80"), IsError(kInvalid, HasSubstr("blank")));
  EXPECT_THAT(CheckAddress("unix:"),
              IsError(kInvalid, HasSubstr("path is empty")));
}

TEST(AddressTest, UnixPathHasTheLimitOfTheKernel) {
  EXPECT_THAT(CheckAddress("unix:" + std::string(107, 'p')), IsOk());
  EXPECT_THAT(CheckAddress("unix:" + std::string(108, 'p')),
              IsError(kInvalid, HasSubstr("107")));
}

TEST(AddressTest, ParsesListsWithoutGapsAndRepeats) {
  const auto list = ParseAddressList("a:1,unix:/b,[::1]:2");
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(*list, ElementsAre("a:1", "unix:/b", "[::1]:2"));
  EXPECT_THAT(ParseAddressList(""), IsError(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(ParseAddressList("a:1,"), IsError(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(ParseAddressList("a:1,b:2,a:1"),
              IsError(kInvalid, HasSubstr("a:1 twice")));
  EXPECT_THAT(ParseAddressList("a:1,b"), IsError(kInvalid, HasSubstr("\"b\"")));
}

}  // namespace
}  // namespace engram

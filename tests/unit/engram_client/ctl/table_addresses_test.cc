#include "engram_client/ctl/table_addresses.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> Addresses(const std::string& tables) {
  return TableAddresses(tables, absl::InfiniteFuture());
}

TEST(TableAddressesTest, AListOfAddresses) {
  EXPECT_THAT(*Addresses("unix:/tmp/a,127.0.0.1:7001"),
              ElementsAre("unix:/tmp/a", "127.0.0.1:7001"));
  EXPECT_THAT(Addresses("a:1,,b:2"),
              IsError(StatusCode::kInvalidArgument, HasSubstr("empty entry")));
}

TEST(TableAddressesTest, AListOfMembers) {
  EXPECT_THAT(*Addresses("static:t1=b:2,t0=a:1"), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(Addresses("static:t1"),
              IsError(StatusCode::kInvalidArgument, HasSubstr("t1")));
}

TEST(TableAddressesTest, AFile) {
  const test::TempDir dir;
  const std::string path = dir.path() + "/members";
  EXPECT_THAT(Addresses("file:" + path),
              IsError(StatusCode::kNotFound, HasSubstr(path)));
  std::ofstream(path) << "# two\nt0 a:1\nt1 b:2 0.5\n";
  const auto addresses = Addresses("file:" + path);
  ASSERT_THAT(addresses, IsOk());
  EXPECT_THAT(*addresses, ElementsAre("a:1", "b:2"));
}

}  // namespace
}  // namespace engram::ctl

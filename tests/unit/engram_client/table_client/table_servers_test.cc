#include "engram_client/table_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseTableServersTest, AListOfAddresses) {
  const auto servers = ParseTableServers("one:1,unix:/tmp/two");
  ASSERT_TRUE(servers.ok()) << servers.status();
  EXPECT_THAT(servers->addresses, ElementsAre("one:1", "unix:/tmp/two"));
  EXPECT_EQ(servers->members, "");
}

TEST(ParseTableServersTest, WhatAMemberSourceTakes) {
  for (const char* text :
       {"static:a=one:1,b=two:2", "file:/etc/members", "dns:tables.default"}) {
    const auto servers = ParseTableServers(text);
    ASSERT_TRUE(servers.ok()) << servers.status();
    EXPECT_THAT(servers->addresses, IsEmpty());
    EXPECT_EQ(servers->members, text);
  }
}

TEST(IsMemberSpecTest, GoesByTheScheme) {
  EXPECT_FALSE(IsMemberSpec("unix:/tmp/a"));
  EXPECT_FALSE(IsMemberSpec("tables:7001"));
  EXPECT_TRUE(IsMemberSpec("static:a=a:1"));
  EXPECT_TRUE(IsMemberSpec("dns:name"));
}

TEST(ParseTableServersTest, RefusesWhatIsNeither) {
  for (const char* text :
       {"", "one", "one:1,one:1", "http://one:1", "static:", "static:a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTableServers(text).status()))
        << text;
  }
}

}  // namespace
}  // namespace engram

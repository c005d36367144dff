#include "engram_client/ctl/find_server.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/made_up_probes.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::Eq;

TEST(FindServerTest, ByName) {
  const std::vector<ServerProbe> servers = {Seeing("t0", {"t0", "t1"}),
                                            Seeing("t1", {"t0", "t1"})};
  const absl::StatusOr<ServerProbe> found = FindServer(servers, "t1");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->address, "t1:7001");
}

TEST(FindServerTest, ListsWhatItFound) {
  const std::vector<ServerProbe> servers = {Seeing("t1", {}), Seeing("t0", {}),
                                            Unreachable("gone:1")};
  EXPECT_THAT(FindServer(servers, "t9"),
              IsError(StatusCode::kNotFound,
                      Eq("no server is named t9; found: t0, t1; no answer from "
                         "gone:1 (refused)")));
  EXPECT_THAT(
      FindServer({}, "t9"),
      IsError(StatusCode::kNotFound, Eq("no server is named t9; found: none")));
}

TEST(FindServerTest, OneThatLeft) {
  ServerProbe server = Seeing("t0", {"t0"});
  server.exchange->add_departures()->set_server_name("t1");
  EXPECT_THAT(FindServer({server}, "t1"),
              IsError(StatusCode::kNotFound,
                      Eq("t1 leaves or has left, and is no member any more: "
                         "give its own address")));
}

TEST(FindServerTest, OneThatSaysNothing) {
  ServerProbe silent = Unreachable("t1:7001");
  silent.name = "t1";
  EXPECT_THAT(FindServer({Seeing("t0", {}), silent}, "t1"),
              IsError(StatusCode::kUnavailable,
                      Eq("t1 at t1:7001 does not answer: refused")));
}

TEST(FindServerTest, OneTwiceIsOneTwoAreNone) {
  ServerProbe twin = Seeing("t0", {});
  twin.address = "other:1";
  EXPECT_THAT(FindServer({Seeing("t0", {}), twin}, "t0"), IsOk());
  twin.instance_id += 1;
  EXPECT_THAT(FindServer({Seeing("t0", {}), twin}, "t0"),
              IsError(StatusCode::kFailedPrecondition,
                      Eq("two servers are named t0: at t0:7001 and at "
                         "other:1")));
}

TEST(FindServerTest, OneOfAnOlderRelease) {
  EXPECT_THAT(FindServer({Server("t0", 1, {true})}, "t0"),
              IsError(StatusCode::kUnimplemented,
                      Eq("t0 at t0:7001 is of a release that knows of no "
                         "cluster")));
}

}  // namespace
}  // namespace engram::ctl

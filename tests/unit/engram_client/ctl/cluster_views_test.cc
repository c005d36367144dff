#include "engram_client/ctl/cluster_views.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engram_client/ctl/made_up_probes.h"

namespace engram::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Names(const std::vector<Member>& members) {
  std::vector<std::string> names;
  for (const Member& member : members) names.push_back(member.name);
  return names;
}

TEST(ClusterViewsTest, OneViewOfAll) {
  const std::vector<SeenView> views =
      ViewsOf({Seeing("t1", {"t0", "t1"}), Seeing("t0", {"t0", "t1"}),
               Server("old", 9, {true}), Unreachable("gone:1")});
  ASSERT_THAT(views, SizeIs(1));
  EXPECT_EQ(views[0].digest, "view-of-t0-t1");
  EXPECT_EQ(views[0].replicas, 2U);
  EXPECT_THAT(views[0].servers, ElementsAre("t1", "t0"));
  EXPECT_THAT(Names(views[0].members), ElementsAre("t0", "t1"));
  EXPECT_EQ(ViewDifferences(views), "");
}

TEST(ClusterViewsTest, WhoHasNoViewSeesNothing) {
  ServerProbe server = Seeing("t0", {});
  server.exchange->set_view_digest("");
  EXPECT_THAT(ViewsOf({server}), IsEmpty());
}

TEST(ClusterViewsTest, SaysHowViewsDiffer) {
  const std::vector<std::string> three = {"t0", "t1", "t2"};
  EXPECT_EQ(
      ViewDifferences(ViewsOf({Seeing("t2", {"t0", "t2", "t3", "t4"}),
                               Seeing("t0", three), Seeing("t1", three)})),
      "views differ: t0, t1 see 3 members, t2 sees 4 (with t3, t4; "
      "without t1)");
}

TEST(ClusterViewsTest, SaysWhatElseDiffers) {
  ServerProbe replicas = Seeing("t1", {"t0", "t1"});
  replicas.exchange->set_view_digest("b");
  replicas.exchange->set_replicas(1);
  ServerProbe capacity = Seeing("t2", {"t0", "t1"});
  capacity.exchange->set_view_digest("c");
  capacity.exchange->mutable_members(1)->set_capacity(0.5);
  ServerProbe layers = Seeing("t3", {"t0", "t1"});
  layers.exchange->set_view_digest("d");
  EXPECT_EQ(
      ViewDifferences(
          ViewsOf({Seeing("t0", {"t0", "t1"}), replicas, capacity, layers})),
      "views differ: t0 sees 2 members, t1 sees 2 (replicas 1, not 2), t2 sees "
      "2 (t1 of capacity 0.5, not 1), t3 sees 2 (other layers)");
}

TEST(ClusterViewsTest, WhoHearsWhom) {
  ServerProbe deaf = Seeing("t1", {"t0", "t1", "t2"});
  deaf.exchange->mutable_members(0)->set_heard(false);
  deaf.exchange->mutable_members(1)->set_heard(false);
  const std::vector<ServerProbe> servers = {
      Seeing("t0", {"t0", "t1", "t2"}), deaf, Seeing("t2", {"t0", "t1", "t2"})};
  EXPECT_THAT(HeardBy(servers, "t0"), ElementsAre("t2"));
  EXPECT_THAT(NotHeardBy(servers, "t0"), ElementsAre("t1"));
  EXPECT_THAT(HeardBy(servers, "t1"), ElementsAre("t0", "t2"));
  EXPECT_THAT(NotHeardBy(servers, "t1"), IsEmpty());
  EXPECT_THAT(HeardBy(servers, "unknown"), IsEmpty());
}

TEST(ClusterViewsTest, FindsMembersThatWereNotAsked) {
  const std::vector<ServerProbe> servers = {
      Seeing("t0", {"t0", "t1", "t2", "t3"}), Unreachable("t1:7001"),
      Seeing("t2", {"t3", "t4"})};
  const std::vector<Member> found = MembersNotAsked(servers, 100);
  EXPECT_THAT(Names(found), ElementsAre("t3", "t4"));
  EXPECT_EQ(found[0].address, "t3:7001");
  EXPECT_THAT(MembersNotAsked(servers, 1), SizeIs(1));
}

TEST(ClusterViewsTest, OneServerHasSeveralAddresses) {
  ServerProbe asked = Seeing("t0", {"t0"});
  asked.address = "localhost:7001";
  EXPECT_THAT(MembersNotAsked({asked}, 100), IsEmpty());
}

TEST(ClusterViewsTest, LeavesAddressesThatNobodyCanCall) {
  ServerProbe server = Seeing("t0", {"t1", "t2"});
  server.exchange->mutable_members(0)->set_address("127.0.0.1:0");
  server.exchange->mutable_members(1)->set_address("nonsense");
  EXPECT_THAT(MembersNotAsked({server}, 100), IsEmpty());
}

TEST(ClusterViewsTest, WhoLeftAndWasNotAsked) {
  ServerProbe server = Seeing("t0", {"t0"});
  for (const char* name : {"t2", "t1", "t0"}) {
    server.exchange->add_departures()->set_server_name(name);
  }
  ServerProbe silent = Unreachable("t1:7001");
  silent.name = "t1";
  EXPECT_THAT(DepartedNotAsked({server, silent}), ElementsAre("t2"));
}

TEST(ClusterViewsTest, NamesThoseThatSayNothing) {
  std::vector<ServerProbe> servers = {Seeing("t0", {"t0", "t1"}),
                                      Unreachable("t1:7001"),
                                      Unreachable("elsewhere:1")};
  NameUnreachable(servers);
  EXPECT_EQ(servers[1].name, "t1");
  EXPECT_EQ(servers[2].name, "");
}

}  // namespace
}  // namespace engram::ctl

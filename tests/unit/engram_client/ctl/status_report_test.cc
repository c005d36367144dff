#include "engram_client/ctl/status_report.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engram_client/ctl/made_up_probes.h"

namespace engram::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(CoverageTest, CountsHolders) {
  const std::vector<TableCoverage> tables =
      CoverageOf({Server("a", 1, {true, true, false, false}),
                  Server("b", 2, {true, false, true, false})});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(tables[0].version, kVersion);
  ASSERT_THAT(tables[0].layers, SizeIs(2));
  EXPECT_EQ(tables[0].layers[1].layer_id, 14);
  EXPECT_EQ(tables[0].layers[1].partitions, 4);
  EXPECT_THAT(tables[0].layers[1].partitions_held_by, ElementsAre(1, 2, 1));
}

TEST(CoverageTest, CountsWhoAnswersAndEachServerOnce) {
  ServerProbe draining = Server("a", 1, {true, false});
  draining.draining = true;
  ServerProbe gone = Server("b", 2, {true, true});
  gone.error = "refused";
  ServerProbe twin = Server("c", 3, {true, false});
  twin.address = "same:1";
  const std::vector<TableCoverage> tables =
      CoverageOf({draining, gone, Server("c", 3, {true, false}), twin});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0].layers[0].partitions_held_by, ElementsAre(1, 0, 1));
}

TEST(StatusReportTest, AllIsWell) {
  const StatusReport report =
      MakeReport({Server("a", 1, {true, true}), Server("b", 2, {true, true})},
                 {{.address = "w:1",
                   .name = "w",
                   .version = kVersion,
                   .ready = true,
                   .layer_ids = {1, 14}}});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(ReportAsText(report),
            R"(table servers
  ADDRESS  NAME  VERSION       STATE  PARTITIONS  REASON
  a:7001   a     0123456789ab  ready  4
  b:7001   b     0123456789ab  ready  4

coverage of table 0123456789ab: partitions by the number of servers that hold them
  LAYER  PARTITIONS  0 SERVERS  1 SERVER  2 SERVERS
  1      2           0          0         2
  14     2           0          0         2

compute workers
  ADDRESS  NAME  VERSION       STATE  LAYERS  REASON
  w:1      w     0123456789ab  ready  1,14

every partition has a server
)");
}

TEST(StatusReportTest, SaysWhatIsWrong) {
  ServerProbe loading = Server("a", 1, {true, false});
  loading.ready = false;
  ServerProbe other = Server("a", 2, {true, true});
  other.version = "fedcba9876543210";
  ServerProbe gone = {.address = "c:1", .error = "refused\n\x1b[2J"};
  const StatusReport report = MakeReport(
      {loading, other, gone}, {{.address = "w:1", .error = "no route"}});
  EXPECT_THAT(
      report.problems,
      ElementsAre("the servers serve 2 different tables: 0123456789ab, "
                  "fedcba987654",
                  "two servers are named a: a:7001 and a:7001",
                  "1 of 2 partitions of layer 1 of table 0123456789ab have no "
                  "server",
                  "1 of 2 partitions of layer 14 of table 0123456789ab have no "
                  "server",
                  "no compute worker is ready"));
  const std::string text = ReportAsText(report);
  EXPECT_THAT(text, HasSubstr("loading"));
  EXPECT_THAT(text, HasSubstr("unreachable  -           refused  [2J\n"));
  EXPECT_THAT(text, HasSubstr("problem: no compute worker is ready\n"));
}

TEST(StatusReportTest, AWorkerOfAnotherTableIsAProblem) {
  const StatusReport report = MakeReport(
      {Server("a", 1, {true})},
      {{.address = "w:1", .version = "fedcba9876543210", .ready = true}});
  EXPECT_THAT(report.problems,
              ElementsAre("worker w:1 computes with table fedcba987654, which "
                          "none of these servers serves"));
}

TEST(StatusReportTest, OneServerTwiceIsSaidOnce) {
  ServerProbe twin = Server("a", 1, {true});
  twin.address = "b:2";
  EXPECT_THAT(MakeReport({Server("a", 1, {true}), twin}, {}).problems,
              ElementsAre("a:7001 and b:2 are one server, a"));
}

TEST(StatusReportTest, NobodyThere) {
  EXPECT_THAT(MakeReport({{.address = "c:1", .error = "refused"}}, {}).problems,
              ElementsAre("no table server answered"));
}

TEST(StatusReportTest, JsonHasTheSame) {
  ServerProbe odd = Server("a", 1, {true, false});
  odd.name = "\xFF";
  const auto json = nlohmann::json::parse(
      ReportAsJson(
          MakeReport({odd, {.address = "c:1", .error = "refused"}}, {}),
          JsonStyle::kIndented),
      nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["servers"][0]["state"], "ready");
  EXPECT_EQ(json["servers"][0]["version"], kVersion);
  EXPECT_EQ(json["servers"][0]["partitions_held"], 2);
  EXPECT_EQ(json["servers"][1]["error"], "refused");
  EXPECT_EQ(json["tables"][0]["layers"][1]["partitions_held_by"],
            nlohmann::json({1, 1}));
  EXPECT_EQ(json["problems"].size(), 2);
}

TEST(StatusReportTest, ShowsTheCluster) {
  ServerProbe t0 = Seeing("t0", {"t0", "t1", "t2"}, {true, true});
  MovesOf(t0).set_owned(2);
  MovesOf(t0).set_memory_bytes(69'206'016);
  MovesOf(t0).set_to_free(2);
  MovesOf(t0).set_lingering(1);
  ServerProbe t1 = Seeing("t1", {"t0", "t1", "t2"}, {false, false});
  t1.ready = false;
  t1.found = true;
  t1.exchange->mutable_members(0)->set_heard(false);
  MovesOf(t1).set_owned(4);
  MovesOf(t1).set_to_load(4);
  MovesOf(t1).set_loading(3);
  MovesOf(t1).set_to_load_bytes(1'234'000'000);
  MovesOf(t1).set_failed_loads(2);
  MovesOf(t1).set_waiting_for("memory\nfor 1 of 4");
  ServerProbe t2 = Unreachable("t2:7001");
  t2.name = "t2";
  const StatusReport report = MakeReport({t0, t1, t2}, {});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.notes,
              ElementsAre("t0 is not heard by t1",
                          "loads that failed at t1 since its start: 2; its log "
                          "says why"));
  EXPECT_EQ(ReportAsText(report),
            R"(table servers
  ADDRESS    NAME  VERSION       STATE        HELD  OWNED  MEMORY   VIEW      HEARD BY  REASON
  t0:7001    t0    0123456789ab  ready        4     2      69.2 MB  view-of-  0/1
  t1:7001 *  t1    0123456789ab  loading      0     4      0 B      view-of-  1/1
  t2:7001    t2    -             unreachable  -     -      -        -         2/2       refused
  * not asked for: a member by what the others say

moves under way: 4 partitions to load (1.2 GB), 2 to free
  NAME  TO LOAD  BYTES   LOADING  SPEED  TIME LEFT  TO FREE  LINGERING  WAITS FOR
  t0    0        0 B     0        -      -          2        1          -
  t1    4        1.2 GB  3        -      -          0        0          memory for 1 of 4

coverage of table 0123456789ab: partitions by the number of servers that hold them
  LAYER  PARTITIONS  0 SERVERS  1 SERVER
  1      2           0          2
  14     2           0          2

every partition has a server
note: t0 is not heard by t1
note: loads that failed at t1 since its start: 2; its log says why
)");
}

TEST(StatusReportTest, ViewsThatDifferAreNoProblem) {
  ServerProbe none = Seeing("t2", {});
  none.exchange->set_view_digest("");
  MovesOf(none).set_waiting_for("2 of 3 servers");
  const StatusReport report =
      MakeReport({Seeing("t0", {"t0", "t1"}), Seeing("t1", {"t1"}), none}, {});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.notes,
              ElementsAre("views differ: t0 sees 2 members, t1 sees 1 (without "
                          "t0)",
                          "t2 has no view of the cluster yet: 2 of 3 servers"));
}

TEST(StatusReportTest, WhoLeavesHasLeftOnceItIsEmpty) {
  ServerProbe server = Seeing("t0", {"t1"}, {true, true});
  server.exchange->set_leaving(true);
  EXPECT_EQ(StateOf(server), "leaving");
  server.layers = {{1, {false, false}}, {14, {false, false}}};
  MovesOf(server).set_lingering(1);
  EXPECT_EQ(StateOf(server), "leaving");
  MovesOf(server).set_lingering(0);
  EXPECT_EQ(StateOf(server), "left");
  EXPECT_THAT(MakeReport({server}, {}).notes,
              ElementsAre("t0 has left and holds nothing: it can be stopped"));
  server.draining = true;
  EXPECT_EQ(StateOf(server), "draining");
}

TEST(StatusReportTest, WhoLeavesMayHoldWhatNobodyElseDoes) {
  ServerProbe server = Seeing("t0", {"t0"}, {true, false});
  server.exchange->add_departures()->set_server_name("t1");
  EXPECT_THAT(MakeReport({server}, {}).problems[0],
              HasSubstr("have no server among these (not asked: t1, which "
                        "left)"));
}

TEST(StatusReportTest, RatesNeedTwoLooks) {
  ServerProbe server = Seeing("t0", {"t0"});
  MovesOf(server).set_to_load(3);
  MovesOf(server).set_to_load_bytes(400'000'000);
  MovesOf(server).set_loaded_bytes(1'000'000'000);
  StatusReport first = MakeReport({server}, {});
  AddRates({}, first);
  MovesOf(server).set_loaded_bytes(1'200'000'000);
  StatusReport second = MakeReport({server}, {});
  second.time = first.time + absl::Seconds(2);
  AddRates(first, second);
  EXPECT_THAT(ReportAsText(first), Not(HasSubstr("MB/s")));
  EXPECT_THAT(ReportAsText(second), HasSubstr("100 MB/s  4 s "));
  // The server has started anew.
  server.instance_id += 1;
  StatusReport third = MakeReport({server}, {});
  AddRates(second, third);
  EXPECT_EQ(third.load_rates.size(), 1U);
  EXPECT_THAT(ReportAsText(third), Not(HasSubstr("MB/s")));
}

TEST(StatusReportTest, JsonHasTheCluster) {
  ServerProbe t0 = Seeing("t0", {"t0", "t1"});
  MovesOf(t0).set_to_load(7);
  MovesOf(t0).set_loaded_bytes(5);
  t0.exchange->mutable_members(1)->set_heard(false);
  ServerProbe t1 = Seeing("t1", {"t0", "t1"});
  t1.exchange->set_view_digest("");
  t1.found = true;
  StatusReport report = MakeReport({t0, t1, Unreachable("gone:1")}, {});
  report.time = absl::FromUnixMillis(1234);
  const std::string text = ReportAsJson(report, JsonStyle::kOneLine);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["format"], "engram-status/1");
  EXPECT_EQ(json["time_unix_ms"], 1234);
  const auto& server = json["servers"][0];
  EXPECT_EQ(server["view_digest"], "view-of-t0-t1");
  EXPECT_EQ(server["heard_by"], nlohmann::json({"t1"}));
  EXPECT_EQ(server["moves"]["to_load"], 7);
  EXPECT_EQ(server["moves"]["loaded_bytes"], 5);
  EXPECT_TRUE(server["moves"]["load_bytes_per_second"].is_null());
  EXPECT_EQ(server["leaving"], false);
  EXPECT_EQ(json["servers"][1]["found"], true);
  EXPECT_TRUE(json["servers"][1]["view_digest"].is_null());
  EXPECT_EQ(json["servers"][1]["not_heard_by"], nlohmann::json({"t0"}));
  EXPECT_TRUE(json["servers"][2]["name"].is_null());
  ASSERT_EQ(json["views"].size(), 1U);
  EXPECT_EQ(json["views"][0]["members"][1]["address"], "t1:7001");
  EXPECT_EQ(json["views"][0]["seen_by"], nlohmann::json({"t0"}));
  EXPECT_EQ(json["notes"].size(), report.notes.size());
}

}  // namespace
}  // namespace engram::ctl

#include "engram_client/ctl/status_report.h"

#include <nlohmann/json.hpp>

#include "engram_client/ctl/status_probe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kVersion[] = "0123456789abcdef";

ServerProbe Server(const std::string& name, uint64_t instance_id,
                   std::vector<bool> held) {
  return {.address = name + ":7001",
          .name = name,
          .version = kVersion,
          .instance_id = instance_id,
          .ready = true,
          .layers = {{1, held}, {14, held}}};
}

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

TEST(CoverageTest, WhoRefusesGathersHoldsNothing) {
  ServerProbe draining = Server("a", 1, {true, true});
  draining.draining = true;
  ServerProbe gone = Server("b", 2, {true, true});
  gone.error = "refused";
  ServerProbe twin = Server("c", 3, {true, false});
  twin.address = "same:1";
  const std::vector<TableCoverage> tables =
      CoverageOf({draining, gone, Server("c", 3, {true, false}), twin});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0].layers[0].partitions_held_by, ElementsAre(1, 1));
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
          MakeReport({odd, {.address = "c:1", .error = "refused"}}, {})),
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

v1::GetTableResponse TableOf(uint32_t layer_id, uint32_t partition_count) {
  v1::GetTableResponse table;
  v1::LayerInfo& layer = *table.add_layers();
  layer.set_layer_id(layer_id);
  layer.set_partition_count(partition_count);
  return table;
}

v1::WatchPartitionsResponse::Snapshot SnapshotOf(uint32_t layer_id,
                                                 const std::string& bitmap) {
  v1::WatchPartitionsResponse::Snapshot snapshot;
  v1::LayerPartitions& layer = *snapshot.add_layers();
  layer.set_layer_id(layer_id);
  layer.set_bitmap(bitmap);
  return snapshot;
}

TEST(HeldPartitionsTest, ReadsTheBitmap) {
  const auto layers =
      HeldPartitions(TableOf(14, 10), SnapshotOf(14, "\x82\x02"));
  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_THAT(*layers, SizeIs(1));
  EXPECT_EQ((*layers)[0].layer_id, 14);
  EXPECT_THAT((*layers)[0].held, ElementsAre(false, true, false, false, false,
                                             false, false, true, false, true));
}

TEST(HeldPartitionsTest, RefusesWhatDoesNotMatch) {
  EXPECT_THAT(
      HeldPartitions(TableOf(14, 10), SnapshotOf(14, "\x82")).status(),
      IsError(StatusCode::kInvalidArgument, HasSubstr("1 bytes for the 10")));
  EXPECT_THAT(HeldPartitions(TableOf(14, 8), SnapshotOf(1, "\x82")).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("layer 1")));
  EXPECT_THAT(HeldPartitions(TableOf(1, 4000000000), {}).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("4000000000")));
}

}  // namespace
}  // namespace engram::ctl

#include "engram_client/ctl/plan_report.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

MemberEnd End(PartitionSum owned, double share) {
  return {.is_member = true, .capacity = 1, .owned = owned, .share = share};
}

PlanReport Report() {
  PlanReport report;
  report.version = "0123456789abcdef";
  report.plan = {.table = {3000, 3'000'000},
                 .replicas_now = 1,
                 .replicas_then = 1,
                 .members = {{.name = "t0",
                              .now = End({1500, 1'500'000}, 1500),
                              .then = End({1020, 1'020'000}, 1000),
                              .to_receive = {10, 10'000},
                              .to_give_up = {490, 490'000}},
                             {.name = "t1",
                              .now = End({1500, 1'500'000}, 1500),
                              .then = End({990, 990'000}, 1000),
                              .to_give_up = {510, 510'000}},
                             {.name = "t2",
                              .then = End({990, 990'000}, 1000),
                              .to_receive = {990, 990'000}}},
                 .moved = {1000, 1'000'000},
                 .least = {990, 990'000}};
  return report;
}

TEST(PlanReportTest, Text) {
  PlanReport report = Report();
  report.notes = {"mind the gap"};
  EXPECT_EQ(PlanAsText(report),
            R"(table 0123456789ab, one copy: 3,000 partitions, 3.0 MB
members 2 -> 3, replicas 1

  MEMBER         NOW    BYTES   THEN   BYTES     RECEIVES  BYTES     GIVES UP  BYTES     PEAK
  t0      stays  1,500  1.5 MB  1,020  1.0 MB    10        10.0 kB   490       490.0 kB  1.5 MB
  t1      stays  1,500  1.5 MB  990    990.0 kB  -         -         510       510.0 kB  1.5 MB
  t2      joins  -      -       990    990.0 kB  990       990.0 kB  -         -         990.0 kB

moves 1,000 partitions, 1.0 MB: 1.01 times the least possible (990 partitions, 990.0 kB)
fullest: t0, 1.02 of its share (now t0, 1.00)
note: mind the gap
)");
}

TEST(PlanReportTest, NothingMoves) {
  PlanReport report = Report();
  report.version.clear();
  report.plan.replicas_then = 2;
  report.plan.moved = {};
  report.plan.least = {};
  const std::string text = PlanAsText(report);
  EXPECT_THAT(text, HasSubstr("table -, one copy"));
  EXPECT_THAT(text, HasSubstr("replicas 1 -> 2\n"));
  EXPECT_THAT(text, HasSubstr("\nnothing moves\n"));
  EXPECT_THAT(text, Not(HasSubstr("least")));
  const auto json = nlohmann::json::parse(PlanAsJson(report));
  EXPECT_TRUE(json["version"].is_null());
  EXPECT_TRUE(json["moved_by_least"].is_null());
}

TEST(PlanReportTest, Json) {
  const auto json = nlohmann::json::parse(PlanAsJson(Report()));
  EXPECT_EQ(json["format"], "engram-plan/1");
  EXPECT_EQ(json["version"], "0123456789abcdef");
  EXPECT_EQ(json["table"]["partitions"], 3000);
  EXPECT_EQ(json["moved"]["bytes"], 1'000'000);
  EXPECT_EQ(json["least"]["partitions"], 990);
  EXPECT_NEAR(json["moved_by_least"].get<double>(), 1.0101, 1e-4);
  EXPECT_EQ(json["fullest"]["then"]["name"], "t0");
  EXPECT_NEAR(json["fullest"]["then"]["of_share"].get<double>(), 1.02, 1e-9);
  const auto& t0 = json["members"][0];
  EXPECT_EQ(t0["change"], "stays");
  EXPECT_EQ(t0["now"]["partitions"], 1500);
  EXPECT_EQ(t0["to_give_up"]["bytes"], 490'000);
  EXPECT_EQ(t0["peak_bytes"], 1'510'000);
  const auto& t2 = json["members"][2];
  EXPECT_EQ(t2["change"], "joins");
  EXPECT_TRUE(t2["now"].is_null());
  EXPECT_EQ(t2["then"]["bytes"], 990'000);
}

TEST(PlanReportTest, OneThatLeaves) {
  PlanReport report = Report();
  report.plan.members[1].then = {};
  EXPECT_EQ(nlohmann::json::parse(PlanAsJson(report))["members"][1]["change"],
            "leaves");
  EXPECT_THAT(PlanAsText(report), HasSubstr("members 2, replicas 1\n"));
}

}  // namespace
}  // namespace engram::ctl

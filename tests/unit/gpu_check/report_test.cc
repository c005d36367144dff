#include "tests/gpu/check/report.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::gpu_check {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Figure MakeFigure(double median_us, double useful, const char* unit) {
  Figure figure;
  figure.name = "gather 8 GB";
  figure.time_us = Summarize({median_us});
  figure.useful = useful;
  figure.unit = unit;
  figure.ceiling = "copy";
  return figure;
}

TEST(ReportTest, ARateIsComparedWithItsCeiling) {
  Report report;
  report.AddRate(MakeFigure(100, 4e8, "B"), 5e12, 0.8);  // 4 TB/s
  report.AddRate(MakeFigure(100, 3e8, "B"), 5e12, 0.8);  // 3 TB/s
  report.AddRate(MakeFigure(100, 3e8, "B"), 5e12, std::nullopt);
  EXPECT_EQ(report.ShortFigures(), 1U);
  const auto figures = nlohmann::json::parse(report.ToJson())["figures"];
  EXPECT_DOUBLE_EQ(figures[0]["ratio"], 0.8);
  EXPECT_EQ(figures[0]["judgement"], "ok");
  EXPECT_EQ(figures[0]["goal"], ">= 0.80");
  EXPECT_DOUBLE_EQ(figures[0]["rate_per_s"], 4e12);
  EXPECT_EQ(figures[1]["judgement"], "short");
  EXPECT_EQ(figures[2]["judgement"], "");
  EXPECT_EQ(figures[2]["goal"], "");
}

TEST(ReportTest, ATimeIsComparedWithItsFloor) {
  Report report;
  report.AddFloor(MakeFigure(130, 0, ""), 100, 1.3);
  report.AddFloor(MakeFigure(131, 0, ""), 100, 1.3);
  EXPECT_EQ(report.ShortFigures(), 1U);
  const auto figures = nlohmann::json::parse(report.ToJson())["figures"];
  EXPECT_DOUBLE_EQ(figures[0]["ratio"], 1.3);
  EXPECT_EQ(figures[0]["judgement"], "ok");
  EXPECT_EQ(figures[1]["goal"], "<= 1.30");
}

TEST(ReportTest, JsonHasEverything) {
  Report report;
  report.AddFact("gpu", "H200 \xff");  // not UTF-8
  report.AddCheck({"gather", Verdict::kFailed, "row 3", 1.5});
  report.AddCeiling("copy", 4.3e12, "B", "2 GiB each way");
  report.AddNote("no cuBLASLt");
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_THAT(json["facts"]["gpu"].get<std::string>(), HasSubstr("H200"));
  EXPECT_EQ(json["checks"][0]["result"], "FAILED");
  EXPECT_EQ(json["checks"][0]["detail"], "row 3");
  EXPECT_EQ(json["ceilings"][0]["rate_per_s"], 4.3e12);
  EXPECT_EQ(json["notes"][0], "no cuBLASLt");
}

TEST(ReportTest, TableHasALineForEach) {
  Report report;
  EXPECT_THAT(report.ToTable(), Not(HasSubstr("figure")));
  report.AddCheck({"gather", Verdict::kOk, "100 rows", 1.5});
  report.AddCeiling("copy", 4.3e12, "B", "2 GiB each way");
  report.AddRate(MakeFigure(12.34, 4e7, "B"), 4.3e12, 0.8);
  report.AddNote("no cuBLASLt");
  const std::string table = report.ToTable();
  EXPECT_THAT(table, HasSubstr("100 rows"));
  EXPECT_THAT(table, HasSubstr("4.30 TB/s"));
  EXPECT_THAT(table, HasSubstr("12.3 us"));
  EXPECT_THAT(table, HasSubstr("short"));
  EXPECT_THAT(table, HasSubstr("note: no cuBLASLt"));
}

TEST(ReportTest, Units) {
  EXPECT_EQ(FormatRate(4.31e12, "B"), "4.31 TB/s");
  EXPECT_EQ(FormatRate(57.12e9, "B"), "57.1 GB/s");
  EXPECT_EQ(FormatRate(812e12, "FLOP"), "812.0 TFLOP/s");
  EXPECT_EQ(FormatRate(0, "B"), "0.00 B/s");
  EXPECT_EQ(FormatMicroseconds(12.34), "12.3 us");
  EXPECT_EQ(FormatMicroseconds(412.3), "412 us");
  EXPECT_EQ(FormatMicroseconds(1240), "1.24 ms");
}

}  // namespace
}  // namespace engram::gpu_check

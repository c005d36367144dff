#include "engram_client/ctl/load_report.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const LoadSubject kSubject = {
    .unit = "rows",
    .version = "0123456789abcdef",
    .client_counts = {{"first_calls", 1200}, {"hedges", 0}, {"hedges_won", 3}}};

LoadPlan GatherPlan() {
  LoadPlan plan;
  plan.flags.tables = "h:1";
  plan.flags.rows = "24x3,1536";
  plan.addresses = {"h:1"};
  plan.engine.schedule.sizes = {{24, 3}, {1536, 1}};
  plan.engine.max_in_flight = 256;
  return plan;
}

LoadResults SomeResults() {
  LoadResults results;
  results.measured_seconds = 2;
  results.sizes.resize(2);
  LoadCounts& small = results.sizes[0];
  small.calls = 1001;
  small.ok = 1000;
  small.failed = 1;
  small.not_sent = 7;
  small.units = 48000;
  small.bytes = 12'672'000;
  small.units_checked = 48000;
  for (int i = 1; i <= 1000; ++i) {
    small.latency.Record(absl::Microseconds(i));
  }
  results.failures.emplace_back();
  results.failures[0].code = "UNAVAILABLE";
  results.failures[0].reason = "DRAINING";
  results.failures[0].count = 1;
  results.failures[0].first_message = "server b\nis \xff leaving";
  results.failures[0].latency.Record(absl::Milliseconds(12));
  results.seconds = {{.from_seconds = -1, .seconds = 1, .sent = 5, .ok = 5},
                     {.from_seconds = 0,
                      .seconds = 1,
                      .sent = 500,
                      .ok = 498,
                      .failed = 1,
                      .not_sent = 7,
                      .in_flight = 3,
                      .p50 = absl::Microseconds(230),
                      .p99 = absl::Milliseconds(1.5)}};
  results.send_delay.Record(absl::Microseconds(40));
  return results;
}

TEST(LoadReportTest, SecondsAreLines) {
  const LoadResults results = SomeResults();
  EXPECT_THAT(LoadSecondAsText(results.seconds[0]), HasSubstr("warm-up"));
  EXPECT_EQ(LoadSecondAsText(results.seconds[1]),
            "  1.0 s  sent 500/s  done 498/s  failed 1  p50 0.230 ms  p99 1.50 "
            "ms  in flight 3  not sent 7");
}

TEST(LoadReportTest, TextHasSizesFailuresAndRemarks) {
  const std::string text = LoadAsText(GatherPlan(), kSubject, SomeResults());
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("gathers of table 0123456789ab, poisson arrivals at "
                    "100/s, 2.0 s\n"),
          testing::ContainsRegex("\n  24  +1,001  1,000  1  +7  +0  +24,000 "
                                 "+6\\.3 +0\\.50. +0\\.[89].. +0\\.9"),
          testing::ContainsRegex("\n  1,536  +0  +0 .* -  +-  +-"),
          testing::ContainsRegex("\n  all  +1,001 "),
          HasSubstr("UNAVAILABLE  DRAINING  1      12.0    12.0  server b is"),
          HasSubstr("checked 48,000 rows; sent 0.040 ms late (p50)"),
          HasSubstr("\nthe client: 1,200 first calls, 3 hedges won\n"),
          Not(HasSubstr("warm-up")), Not(HasSubstr("wrong"))));
}

TEST(LoadReportTest, TextSaysWhatSpoilsTheFigures) {
  LoadResults results = SomeResults();
  results.not_sent_for_checks = 3;
  results.deadline_overrun = absl::Milliseconds(4);
  results.warmup_failed = 2;
  results.unfinished = 9;
  results.interrupted = true;
  results.mismatch = LoadMismatch{.wrong = 2, .text = "wrong row: ..."};
  EXPECT_THAT(
      LoadAsText(GatherPlan(), kSubject, results),
      AllOf(HasSubstr("3 calls were not sent while answers waited"),
            HasSubstr("up to 4.00 ms after their deadline"),
            HasSubstr("in the warm-up 2 of"),
            HasSubstr("9 calls had no end yet"), HasSubstr("\ninterrupted\n"),
            HasSubstr("wrong row: ... (2 wrong rows in this call)")));
}

TEST(LoadReportTest, JsonHasTheSame) {
  const auto json =
      nlohmann::json::parse(LoadAsJson(GatherPlan(), kSubject, SomeResults()));
  EXPECT_EQ(json["format"], "engram-load/1");
  EXPECT_EQ(json["kind"], "gathers");
  EXPECT_EQ(json["version"], kSubject.version);
  EXPECT_EQ(json["exit_code"], 2);
  EXPECT_EQ(json["options"]["rows"], "24x3,1536");
  EXPECT_EQ(json["options"]["layers"], nullptr);
  EXPECT_FALSE(json["options"].contains("tokens"));
  const auto& small = json["sizes"][0];
  EXPECT_EQ(small["size"], 24);
  EXPECT_EQ(small["weight"], 3);
  for (const auto& counts : {small, json["all"]}) {
    EXPECT_EQ(counts["calls"], 1001);
    EXPECT_EQ(counts["not_sent"], 7);
    EXPECT_EQ(counts["rows"], 48000);
    EXPECT_EQ(counts["rows_per_second"], 24000);
    EXPECT_NEAR(counts["mb_per_second"].get<double>(), 6.336, 1e-9);
    EXPECT_NEAR(counts["latency_ms"]["p50"].get<double>(), 0.5, 0.005);
    EXPECT_EQ(counts["latency_ms"]["max"], 1.0);
  }
  EXPECT_EQ(json["sizes"][1]["latency_ms"], nullptr);
  uint64_t in_buckets = 0;
  double last = -1;
  for (const auto& bucket : small["latency_histogram_ms"]) {
    EXPECT_GE(bucket[0].get<double>(), last);
    EXPECT_GT(bucket[1].get<double>(), bucket[0].get<double>());
    last = bucket[1];
    in_buckets += bucket[2].get<uint64_t>();
  }
  EXPECT_EQ(in_buckets, 1000);
  EXPECT_EQ(json["failures"][0]["code"], "UNAVAILABLE");
  EXPECT_EQ(json["failures"][0]["reason"], "DRAINING");
  EXPECT_EQ(json["failures"][0]["latency_ms"]["max"], 12.0);
  EXPECT_EQ(json["seconds"][0]["from_seconds"], -1);
  EXPECT_EQ(json["seconds"][1]["in_flight"], 3);
  EXPECT_EQ(json["seconds"][1]["p50_ms"], 0.23);
  EXPECT_EQ(json["mismatch"], nullptr);
  EXPECT_EQ(json["client"]["first_calls"], 1200);
  EXPECT_EQ(json["client"]["hedges"], 0);
}

TEST(LoadReportTest, JsonNamesWhatIsWrong) {
  LoadResults results = SomeResults();
  results.mismatch = LoadMismatch{.version = "v",
                                  .layer = LayerId{14},
                                  .item = 123,
                                  .slot = 4,
                                  .byte = 5,
                                  .wanted = 6,
                                  .got = 7,
                                  .wrong = 8,
                                  .text = "t"};
  const auto json =
      nlohmann::json::parse(LoadAsJson(GatherPlan(), kSubject, results));
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["mismatch"], nlohmann::json({{"version", "v"},
                                              {"layer", 14},
                                              {"row", 123},
                                              {"slot", 4},
                                              {"byte", 5},
                                              {"wanted", 6},
                                              {"got", 7},
                                              {"wrong", 8},
                                              {"text", "t"}}));
}

TEST(LoadReportTest, StepsCountTokens) {
  LoadPlan plan;
  plan.flags.workers = "h:1";
  plan.engine.schedule.sizes = {{1, 1}};
  LoadResults results;
  results.sizes.resize(1);
  const LoadSubject subject = {.unit = "tokens", .version = "v"};
  EXPECT_THAT(LoadAsText(plan, subject, results),
              AllOf(HasSubstr("steps of table v"), HasSubstr("TOKENS/S"),
                    HasSubstr("  -")));
  const auto json = nlohmann::json::parse(LoadAsJson(plan, subject, results));
  EXPECT_EQ(json["kind"], "steps");
  EXPECT_EQ(json["all"]["tokens"], 0);
  EXPECT_EQ(json["all"]["tokens_per_second"], nullptr);
  EXPECT_EQ(json["options"]["mode"], "forward");
  EXPECT_FALSE(json.contains("client"));
}

}  // namespace
}  // namespace engram::ctl

#include "engram_client/ctl/verify_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace engram::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

VerifyReport MakeReport() {
  return {.version = std::string(64, 'a'),
          .where = "flat store /nvme/aaaaaaaaaaaaaaaa",
          .expected = 15,
          .asked = 12,
          .elapsed = absl::Seconds(2),
          .result = {.looked_at = {.partitions = 12, .bytes = 4'000'000},
                     .sound = 12,
                     .sound_bytes = 4'000'000}};
}

BadPartition Damaged() {
  return {.ref = {LayerId{1}, PartitionId{3}},
          .files = "/nvme/3.rows",
          .error = "/nvme/3.rows: page 2 is damaged"};
}

BadPartition WrongDigest() {
  return {.ref = {LayerId{1}, PartitionId{4}},
          .files = "/nvme/4.rows",
          .expected_digest = std::string(32, 'e'),
          .actual_digest = std::string(32, 'f')};
}

BadPartition Unreadable() {
  return {.ref = {LayerId{14}, PartitionId{0}},
          .files = "/nvme/0.rows",
          .damaged = false,
          .error = "the disk\nfails"};
}

TEST(VerifyReportTest, ExitCodeSaysWhatWasFound) {
  VerifyReport report = MakeReport();
  EXPECT_EQ(ExitCodeOf(report), kAllSound);
  report.result.bad = {Unreadable()};
  EXPECT_EQ(ExitCodeOf(report), kCannotVerify);
  report.result.bad = {Damaged(), Unreadable()};
  EXPECT_EQ(ExitCodeOf(report), kDamageFound);
}

TEST(VerifyReportTest, OneLineForEachBadPartitionAndOneWithTheSums) {
  VerifyReport report = MakeReport();
  EXPECT_EQ(VerifyAsText(report),
            "table version aaaaaaaaaaaa, flat store /nvme/aaaaaaaaaaaaaaaa: 12 "
            "partitions verified (4.0 MB) in 2.0 s, 2 MB/s; 0 damaged, 0 "
            "unreadable, 3 of 15 not there\n");
  report.result.bad = {Damaged(), WrongDigest(), Unreadable()};
  report.result.sound = 9;
  EXPECT_THAT(
      VerifyAsText(report),
      AllOf(HasSubstr("layer 1 partition 3 damaged: /nvme/3.rows: page 2 is "
                      "damaged\n"),
            HasSubstr("layer 1 partition 4 damaged: /nvme/4.rows: the digest "
                      "is ffffffffffffffffffffffffffffffff, the manifest says "
                      "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\n"),
            HasSubstr("layer 14 partition 0 unreadable: /nvme/0.rows: the "
                      "disk"),
            HasSubstr("9 partitions verified"),
            HasSubstr("; 2 damaged, 1 unreadable, "),
            Not(HasSubstr("interrupted"))));
}

TEST(VerifyReportTest, SaysWhatWasNotLookedAt) {
  VerifyReport report = MakeReport();
  report.result.looked_at = {.partitions = 5, .interrupted = true};
  report.result.sound = 5;
  EXPECT_THAT(VerifyAsText(report),
              HasSubstr("interrupted: 7 partitions were not looked at\n"));
  const auto json = nlohmann::json::parse(VerifyAsJson(report));
  EXPECT_EQ(json["partitions"]["not_looked_at"], 7);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["ok"], false);
}

TEST(VerifyReportTest, Json) {
  VerifyReport report = MakeReport();
  EXPECT_EQ(nlohmann::json::parse(VerifyAsJson(report))["ok"], true);
  report.result.bad = {Damaged(), WrongDigest(), Unreadable()};
  report.result.sound = 9;
  const auto json = nlohmann::json::parse(VerifyAsJson(report));
  EXPECT_EQ(json["format"], "engram-verify/1");
  EXPECT_EQ(json["partitions"], nlohmann::json({{"expected", 15},
                                                {"verified", 9},
                                                {"damaged", 2},
                                                {"unreadable", 1},
                                                {"missing", 3},
                                                {"not_looked_at", 0}}));
  EXPECT_EQ(json["bad"][0],
            nlohmann::json({{"layer", 1},
                            {"partition", 3},
                            {"files", "/nvme/3.rows"},
                            {"state", "damaged"},
                            {"error", "/nvme/3.rows: page 2 is damaged"}}));
  EXPECT_EQ(json["bad"][1]["actual_digest"], std::string(32, 'f'));
  EXPECT_EQ(json["bad"][2]["state"], "unreadable");
  EXPECT_EQ(json["ok"], false);
}

}  // namespace
}  // namespace engram::ctl

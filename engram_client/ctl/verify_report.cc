// The JSON of `engramctl verify`, format "engram-verify/1". Bytes are of packed
// rows.
//
//   version           of the table
//   where             the checkpoint or the store
//   partitions        expected: of the manifest; verified; damaged; unreadable;
//                     missing: not in the store; not_looked_at: interrupted
//   verified_bytes, seconds
//   bad[]             layer, partition, files
//     state             damaged or unreadable
//     error             what the reader said, or
//     expected_digest, actual_digest
//   interrupted, ok   whether all that is there was looked at; and is sound

#include "engram_client/ctl/verify_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/progress.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;

uint64_t DamagedIn(const VerifyReport& report) {
  const auto& bad = report.result.bad;
  return static_cast<uint64_t>(
      std::count_if(bad.begin(), bad.end(),
                    [](const BadPartition& each) { return each.damaged; }));
}

uint64_t UnreadableIn(const VerifyReport& report) {
  return report.result.bad.size() - DamagedIn(report);
}

uint64_t NotLookedAtIn(const VerifyReport& report) {
  return report.asked - report.result.looked_at.partitions;
}

std::string StateOf(const BadPartition& bad) {
  return bad.damaged ? "damaged" : "unreadable";
}

std::string BadAsText(const BadPartition& bad) {
  const std::string why =
      bad.error.empty()
          ? absl::StrCat(bad.files, ": the digest is ", bad.actual_digest,
                         ", the manifest says ", bad.expected_digest)
      : absl::StrContains(bad.error, bad.files)
          ? bad.error
          : absl::StrCat(bad.files, ": ", bad.error);
  return absl::StrCat("layer ", ToInt(bad.ref.layer), " partition ",
                      ToInt(bad.ref.partition), " ", StateOf(bad), ": ",
                      Printable(why), "\n");
}

Json BadAsJson(const BadPartition& bad) {
  Json json = {{"layer", ToInt(bad.ref.layer)},
               {"partition", ToInt(bad.ref.partition)},
               {"files", bad.files},
               {"state", StateOf(bad)}};
  if (!bad.error.empty()) {
    json["error"] = bad.error;
  } else {
    json["expected_digest"] = bad.expected_digest;
    json["actual_digest"] = bad.actual_digest;
  }
  return json;
}

}  // namespace

int ExitCodeOf(const VerifyReport& report) {
  if (DamagedIn(report) > 0) return kDamageFound;
  return report.result.bad.empty() ? kAllSound : kCannotVerify;
}

std::string VerifyAsText(const VerifyReport& report) {
  std::string text;
  for (const BadPartition& bad : report.result.bad) {
    absl::StrAppend(&text, BadAsText(bad));
  }
  absl::StrAppend(
      &text, "table version ", ShortVersion(report.version), ", ", report.where,
      ": ", WithCommas(report.result.sound), " partitions verified (",
      FormatBytes(report.result.sound_bytes), ") in ",
      absl::StrFormat("%.1f s, ", absl::ToDoubleSeconds(report.elapsed)),
      FormatRate(report.result.looked_at.bytes, report.elapsed), "; ",
      WithCommas(DamagedIn(report)), " damaged, ",
      WithCommas(UnreadableIn(report)), " unreadable, ",
      WithCommas(report.expected - report.asked), " of ",
      WithCommas(report.expected), " not there\n");
  if (report.result.looked_at.interrupted) {
    absl::StrAppend(&text, "interrupted: ", WithCommas(NotLookedAtIn(report)),
                    " partitions were not looked at\n");
  }
  return text;
}

std::string VerifyAsJson(const VerifyReport& report) {
  const bool interrupted = report.result.looked_at.interrupted;
  Json json = {{"format", "engram-verify/1"},
               {"version", report.version},
               {"where", report.where},
               {"partitions",
                {{"expected", report.expected},
                 {"verified", report.result.sound},
                 {"damaged", DamagedIn(report)},
                 {"unreadable", UnreadableIn(report)},
                 {"missing", report.expected - report.asked},
                 {"not_looked_at", NotLookedAtIn(report)}}},
               {"verified_bytes", report.result.sound_bytes},
               {"seconds", absl::ToDoubleSeconds(report.elapsed)},
               {"bad", Json::array()},
               {"interrupted", interrupted},
               {"ok", report.result.bad.empty() && !interrupted}};
  for (const BadPartition& bad : report.result.bad) {
    json["bad"].push_back(BadAsJson(bad));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engram::ctl

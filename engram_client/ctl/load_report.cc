#include "engram_client/ctl/load_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Milliseconds with three digits, or to the microsecond: "0.041", "1.23",
// "104".
std::string Ms(absl::Duration latency) {
  const double ms = absl::ToDoubleMilliseconds(latency);
  if (ms >= 99.95) return absl::StrFormat("%.0f", ms);
  if (ms >= 9.995) return absl::StrFormat("%.1f", ms);
  if (ms >= 0.9995) return absl::StrFormat("%.2f", ms);
  return absl::StrFormat("%.3f", ms);
}

std::string PerSecond(double count, double seconds) {
  if (seconds <= 0) return "-";
  return WithCommas(static_cast<uint64_t>(std::llround(count / seconds)));
}

std::vector<std::string> CountsRow(const std::string& name,
                                   const LoadCounts& counts, double seconds) {
  std::vector<std::string> row = {
      name,
      WithCommas(counts.calls),
      WithCommas(counts.ok),
      WithCommas(counts.failed),
      WithCommas(counts.not_sent),
      WithCommas(counts.wrong),
      PerSecond(static_cast<double>(counts.units), seconds),
      seconds <= 0 ? "-"
                   : absl::StrFormat("%.1f", static_cast<double>(counts.bytes) /
                                                 1e6 / seconds)};
  for (const double quantile : {0.5, 0.9, 0.99, 0.999, 1.0}) {
    row.push_back(counts.ok == 0 ? "-" : Ms(counts.latency.Quantile(quantile)));
  }
  return row;
}

std::string SizesAsText(const LoadPlan& plan, const LoadSubject& subject,
                        const LoadResults& results) {
  const std::string unit = absl::AsciiStrToUpper(subject.unit);
  Rows rows = {{plan.flags.steps() ? "TOKENS" : "ROWS A LAYER", "CALLS", "OK",
                "FAILED", "NOT SENT", "WRONG", absl::StrCat(unit, "/S"), "MB/S",
                "P50 MS", "P90", "P99", "P99.9", "MAX"}};
  for (size_t i = 0; i < results.sizes.size(); ++i) {
    rows.push_back(CountsRow(WithCommas(plan.sizes()[i].size), results.sizes[i],
                             results.measured_seconds));
  }
  rows.push_back(CountsRow("all", results.Sum(), results.measured_seconds));
  return FormatTable(rows);
}

std::string FailuresAsText(const LoadResults& results) {
  if (results.failures.empty()) return "";
  Rows rows = {
      {"FAILED WITH", "REASON", "CALLS", "P50 MS", "MAX", "THE FIRST"}};
  for (const LoadFailure& failure : results.failures) {
    rows.push_back(
        {failure.code, failure.reason.empty() ? "-" : failure.reason,
         WithCommas(failure.count), Ms(failure.latency.Quantile(0.5)),
         Ms(failure.latency.max()), Printable(failure.first_message)});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

// "1,200 first calls, 3 retries"; what is 0 is left out.
std::string ClientAsText(const LoadSubject& subject) {
  std::vector<std::string> counts;
  for (const auto& [name, count] : subject.client_counts) {
    if (count == 0) continue;
    counts.push_back(absl::StrCat(WithCommas(count), " ",
                                  absl::StrReplaceAll(name, {{"_", " "}})));
  }
  return absl::StrJoin(counts, ", ");
}

// What the reader must know before he believes the figures.
std::string RemarksAsText(const LoadSubject& subject,
                          const LoadResults& results) {
  const LoadCounts sum = results.Sum();
  std::string text = absl::StrCat(
      "checked ", WithCommas(sum.units_checked), " ", subject.unit, "; sent ",
      Ms(results.send_delay.Quantile(0.5)), " ms late (p50), ",
      Ms(results.send_delay.Quantile(0.99)), " (p99), ",
      Ms(results.send_delay.max()), " (max), which is in the latencies\n");
  if (!subject.client_counts.empty()) {
    absl::StrAppend(&text, "the client: ", ClientAsText(subject), "\n");
  }
  if (results.not_sent_for_checks > 0) {
    absl::StrAppend(&text, WithCommas(results.not_sent_for_checks),
                    " calls were not sent while answers waited to be checked: "
                    "give more --check-threads or --max-in-flight\n");
  }
  if (results.deadline_overrun > absl::ZeroDuration()) {
    absl::StrAppend(&text, "calls ended up to ", Ms(results.deadline_overrun),
                    " ms after their deadline\n");
  }
  if (results.warmup_failed + results.warmup_not_sent > 0) {
    absl::StrAppend(&text, "in the warm-up ", WithCommas(results.warmup_failed),
                    " of ", WithCommas(results.warmup_calls), " calls failed, ",
                    WithCommas(results.warmup_not_sent), " were not sent\n");
  }
  if (results.unfinished > 0) {
    absl::StrAppend(&text, WithCommas(results.unfinished),
                    " calls had no end yet\n");
  }
  if (results.interrupted) absl::StrAppend(&text, "interrupted\n");
  if (results.mismatch.has_value()) {
    absl::StrAppend(&text, results.mismatch->text, " (",
                    WithCommas(results.mismatch->wrong), " wrong ",
                    subject.unit, " in this call)\n");
  }
  return text;
}

}  // namespace

std::string LoadSecondAsText(const LoadSecond& second) {
  const std::string when =
      second.from_seconds + second.seconds / 2 < 0
          ? "warm-up"
          : absl::StrFormat("%5.1f s", second.from_seconds + second.seconds);
  return absl::StrFormat(
      "%7s  sent %s/s  done %s/s  failed %s  p50 %s ms  p99 %s ms  in flight "
      "%s  not sent %s",
      when, PerSecond(second.sent, second.seconds),
      PerSecond(second.ok, second.seconds), WithCommas(second.failed),
      Ms(second.p50), Ms(second.p99), WithCommas(second.in_flight),
      WithCommas(second.not_sent));
}

std::string LoadAsText(const LoadPlan& plan, const LoadSubject& subject,
                       const LoadResults& results) {
  return absl::StrCat(
      absl::StrFormat("%s of table %s, %s arrivals at %g/s, %.1f s\n",
                      plan.flags.steps() ? "steps" : "gathers",
                      ShortVersion(subject.version), plan.flags.arrivals,
                      plan.flags.rate, results.measured_seconds),
      SizesAsText(plan, subject, results), FailuresAsText(results), "\n",
      RemarksAsText(subject, results));
}

}  // namespace engram::ctl

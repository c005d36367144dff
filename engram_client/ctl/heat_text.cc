#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/heat_report.h"

namespace engram::ctl {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Percent(double share) {
  const int digits = share < 0.001 && share > 0 ? 4 : 2;
  return absl::StrFormat("%.*f %%", digits, share * 100);
}

std::string PercentOf(double part, double whole) {
  return Percent(whole == 0 ? 0 : part / whole);
}

std::string Whole(double number) {
  return WithCommas(static_cast<uint64_t>(std::llround(std::max(number, 0.0))));
}

std::string WithError(double number, double error) {
  return error == 0 ? Whole(number)
                    : absl::StrCat(Whole(number), " +- ", Whole(error));
}

std::string Size(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10'000) return WithCommas(bytes) + " B";
  if (bytes < 10'000'000) return Whole(number / 1e3) + " kB";
  return Whole(number / 1e6) + " MB";
}

std::string CacheMb(const HeatSummary::Point& point) {
  return point.cache_mb == 0 ? "-" : WithCommas(point.cache_mb);
}

// A decade's first and the last.
bool IsShown(const HeatReport& report, const HeatSummary::Point& point) {
  const double decade = std::log10(point.rows);
  return decade == std::floor(decade) || &point == &report.summary.curve.back();
}

std::string Head(const HeatReport& report) {
  const ClusterHeat& heat = report.heat;
  const HeatSummary& summary = report.summary;
  size_t counted = 0;
  for (const ServerHeat& server : report.servers) {
    counted += server.error.empty() ? 1 : 0;
  }
  std::string text = absl::StrCat(
      WithCommas(heat.lookups), " lookups in ",
      absl::StrFormat("%g", absl::ToDoubleSeconds(report.duration)), " s on ",
      counted, counted == 1 ? " server" : " servers", " of table ",
      ShortVersion(heat.version), ", of ",
      WithError(summary.rows, summary.rows_error), " rows (",
      PercentOf(summary.rows, static_cast<double>(heat.rows)), " of ",
      WithCommas(heat.rows), ")\n");
  if (summary.sample_share >= 1) return text + "Every row was counted.\n";
  absl::StrAppend(&text, "Estimated from ", WithCommas(summary.sampled_rows),
                  " rows, ", Percent(summary.sample_share), " of all");
  if (summary.named_rows > 0) {
    absl::StrAppend(&text, ", and from ", WithCommas(summary.named_rows),
                    " rows of ", WithCommas(*summary.hot_from),
                    " lookups and more that are known by name");
  }
  return text + "; +- is one standard error.\n";
}

std::string Servers(const HeatReport& report) {
  Rows rows = {{"SERVER", "ADDRESS", "LOOKUPS"}};
  for (const ServerHeat& server : report.servers) {
    rows.push_back({server.name.empty() ? "-" : Printable(server.name),
                    Printable(server.address),
                    server.error.empty()
                        ? WithCommas(server.lookups())
                        : absl::StrCat("failed: ", Printable(server.error))});
  }
  return FormatTable(rows);
}

std::string Histogram(const HeatReport& report) {
  Rows rows = {{"LOOKUPS A ROW", "ROWS", "OF ROWS", "OF LOOKUPS"}};
  for (const HeatSummary::Bucket& bucket : report.summary.histogram) {
    rows.push_back(
        {bucket.least == bucket.most
             ? WithCommas(bucket.least)
             : absl::StrCat(WithCommas(bucket.least), " - ",
                            WithCommas(bucket.most)),
         WithError(bucket.rows, bucket.rows_error),
         PercentOf(bucket.rows, report.summary.rows),
         PercentOf(bucket.lookups, static_cast<double>(report.heat.lookups))});
  }
  return FormatTable(rows);
}

std::string Curve(const HeatReport& report) {
  Rows rows = {{"HOTTEST ROWS", "OF LOOKUPS", "+-", "BYTES", "CACHE MB"}};
  const auto add = [&](const HeatSummary::Point& point) {
    rows.push_back({Whole(point.rows), Percent(point.share),
                    Percent(point.share_error), Size(point.bytes),
                    CacheMb(point)});
  };
  for (const HeatSummary::Point& point : report.summary.curve) {
    if (IsShown(report, point)) add(point);
  }
  rows.push_back({""});
  for (const HeatSummary::Point& point : report.summary.coverage) add(point);
  return FormatTable(rows);
}

std::string Partitions(const HeatReport& report) {
  Rows rows = {
      {"LAYER", "LOOKUPS", "PARTITIONS", "ASKED", "MAX / MEAN", "P99 / MEAN"}};
  for (const HeatSummary::Layer& layer : report.summary.layers) {
    rows.push_back({absl::StrCat(layer.layer_id), WithCommas(layer.lookups),
                    WithCommas(layer.partitions),
                    WithCommas(layer.partitions_asked),
                    absl::StrFormat("%.3f", layer.max_over_mean),
                    absl::StrFormat("%.3f", layer.p99_over_mean)});
  }
  return FormatTable(rows);
}

std::string Top(const HeatReport& report) {
  Rows rows = {{"LAYER", "ROW", "LOOKUPS", "OF LOOKUPS"}};
  for (const HeatSummary::TopRow& row : report.summary.top) {
    rows.push_back(
        {absl::StrCat(row.layer_id), absl::StrCat(row.row),
         absl::StrCat(row.exact ? "" : "about ", WithCommas(row.lookups)),
         PercentOf(static_cast<double>(row.lookups),
                   static_cast<double>(report.heat.lookups))});
  }
  return FormatTable(rows);
}

}  // namespace

std::string HeatAsText(const HeatReport& report) {
  std::string text = absl::StrCat(Head(report), "\n", Servers(report));
  if (report.heat.lookups == 0) return text;
  absl::StrAppend(&text, "\n", Histogram(report), "\n", Curve(report), "\n",
                  Partitions(report));
  if (!report.summary.top.empty()) absl::StrAppend(&text, "\n", Top(report));
  return text;
}

}  // namespace engram::ctl

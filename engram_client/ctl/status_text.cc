#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/progress.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/status_report.h"

namespace engram::ctl {
namespace {

using Cells = std::vector<std::string>;
using Rows = std::vector<Cells>;

constexpr size_t kShortDigestDigits = 8;

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : Printable(text);
}

// Whether any server is of a release that tells about the cluster.
bool KnowsCluster(const StatusReport& report) {
  return std::any_of(
      report.servers.begin(), report.servers.end(),
      [](const ServerProbe& server) { return server.exchange.has_value(); });
}

// "2/3": so many of those that answered and see it as a member.
std::string HeardAsText(const StatusReport& report, const std::string& name) {
  const size_t heard = HeardBy(report.servers, name).size();
  const size_t all = heard + NotHeardBy(report.servers, name).size();
  return all == 0 ? "-" : absl::StrCat(heard, "/", all);
}

// What Exchange tells: owned, memory, view and who hears it.
Cells ClusterCells(const StatusReport& report, const ServerProbe& server) {
  Cells cells = {"-", "-", "-"};
  if (server.exchange.has_value()) {
    const std::string& digest = server.exchange->view_digest();
    cells = {WithCommas(server.exchange->moves().owned()),
             FormatBytes(server.exchange->moves().memory_bytes()),
             OrDash(digest.substr(0, kShortDigestDigits))};
  }
  cells.push_back(HeardAsText(report, server.name));
  return cells;
}

std::string ServersAsText(const StatusReport& report) {
  const bool knows_cluster = KnowsCluster(report);
  Rows rows = {{"ADDRESS", "NAME", "VERSION", "STATE", "PARTITIONS"}};
  if (knows_cluster) {
    rows[0].back() = "HELD";
    rows[0].insert(rows[0].end(), {"OWNED", "MEMORY", "VIEW", "HEARD BY"});
  }
  rows[0].push_back("REASON");
  bool some_found = false;
  for (const ServerProbe& server : report.servers) {
    some_found = some_found || server.found;
    const bool known = server.error.empty();
    Cells row = {
        absl::StrCat(Printable(server.address), server.found ? " *" : ""),
        OrDash(server.name), ShortVersion(server.version), StateOf(server),
        known ? WithCommas(server.partitions_held()) : "-"};
    if (knows_cluster) {
      const Cells more = ClusterCells(report, server);
      row.insert(row.end(), more.begin(), more.end());
    }
    row.push_back(Printable(server.error));
    rows.push_back(std::move(row));
  }
  return absl::StrCat(
      "table servers\n", FormatTable(rows),
      some_found ? "  * not asked for: a member by what the others say\n" : "");
}

// How fast it loads and how long it will, as far as that is known.
Cells SpeedCells(const RateMeter* rate, uint64_t to_load_bytes) {
  if (rate == nullptr || to_load_bytes == 0) return {"-", "-"};
  const std::optional<double> speed = rate->per_second();
  const std::optional<absl::Duration> left = rate->TimeFor(to_load_bytes);
  return {speed.has_value() ? absl::StrFormat("%.0f MB/s", *speed / 1e6) : "-",
          left.has_value() ? ShortDuration(*left) : "-"};
}

std::string MovesAsText(const StatusReport& report) {
  Rows rows = {{"NAME", "TO LOAD", "BYTES", "LOADING", "SPEED", "TIME LEFT",
                "TO FREE", "LINGERING", "WAITS FOR"}};
  uint64_t to_load_bytes = 0;
  uint64_t to_load = 0;
  uint64_t to_free = 0;
  for (const ServerProbe& server : report.servers) {
    if (!server.moving()) continue;
    const v1::ExchangeResponse::Moves& moves = server.exchange->moves();
    to_load += moves.to_load();
    to_load_bytes += moves.to_load_bytes();
    to_free += moves.to_free();
    const Cells speed =
        SpeedCells(LoadRateOf(report, server), moves.to_load_bytes());
    rows.push_back({OrDash(server.name), WithCommas(moves.to_load()),
                    FormatBytes(moves.to_load_bytes()),
                    WithCommas(moves.loading()), speed[0], speed[1],
                    WithCommas(moves.to_free()), WithCommas(moves.lingering()),
                    OrDash(moves.waiting_for())});
  }
  if (rows.size() == 1) return "";
  return absl::StrCat("\nmoves under way: ", WithCommas(to_load),
                      " partitions to load (", FormatBytes(to_load_bytes),
                      "), ", WithCommas(to_free), " to free\n",
                      FormatTable(rows));
}

std::string CoverageAsText(const TableCoverage& table) {
  size_t most = 0;
  for (const LayerCoverage& layer : table.layers) {
    most = std::max(most, layer.partitions_held_by.size());
  }
  std::vector<std::string> header = {"LAYER", "PARTITIONS"};
  for (size_t n = 0; n < most; ++n) {
    header.push_back(absl::StrCat(n, n == 1 ? " SERVER" : " SERVERS"));
  }
  Rows rows = {header};
  for (const LayerCoverage& layer : table.layers) {
    std::vector<std::string> row = {absl::StrCat(layer.layer_id),
                                    WithCommas(layer.partitions)};
    for (size_t n = 0; n < most; ++n) {
      row.push_back(n < layer.partitions_held_by.size()
                        ? WithCommas(layer.partitions_held_by[n])
                        : "0");
    }
    rows.push_back(std::move(row));
  }
  return absl::StrCat("\ncoverage of table ", ShortVersion(table.version),
                      ": partitions by the number of servers that hold them\n",
                      FormatTable(rows));
}

std::string WorkersAsText(const StatusReport& report) {
  Rows rows = {{"ADDRESS", "NAME", "VERSION", "STATE", "LAYERS", "REASON"}};
  for (const WorkerProbe& worker : report.workers) {
    rows.push_back({worker.address, OrDash(worker.name),
                    ShortVersion(worker.version), StateOf(worker),
                    OrDash(absl::StrJoin(worker.layer_ids, ",")),
                    Printable(worker.error)});
  }
  return absl::StrCat("\ncompute workers\n", FormatTable(rows));
}

}  // namespace

std::string ReportAsText(const StatusReport& report) {
  std::string text = absl::StrCat(ServersAsText(report), MovesAsText(report));
  for (const TableCoverage& table : report.tables) {
    absl::StrAppend(&text, CoverageAsText(table));
  }
  if (!report.workers.empty()) absl::StrAppend(&text, WorkersAsText(report));
  absl::StrAppend(&text, "\n");
  for (const std::string& problem : report.problems) {
    absl::StrAppend(&text, "problem: ", problem, "\n");
  }
  if (report.problems.empty()) {
    absl::StrAppend(&text, "every partition has a server\n");
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  return text;
}

}  // namespace engram::ctl

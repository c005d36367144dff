#include "engram_client/ctl/status_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string StateOf(const ServerProbe& server) {
  if (!server.error.empty()) return "unreachable";
  if (server.draining) return "draining";
  return server.ready ? "ready" : "loading";
}

std::string StateOf(const WorkerProbe& worker) {
  if (!worker.error.empty()) return "unreachable";
  return worker.ready ? "ready" : "loading";
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : Printable(text);
}

void FindServerProblems(const StatusReport& report,
                        std::vector<std::string>& problems) {
  if (report.tables.empty()) {
    problems.push_back("no table server answered");
  }
  if (report.tables.size() > 1) {
    problems.push_back(absl::StrCat(
        "the servers serve ", report.tables.size(), " different tables: ",
        absl::StrJoin(report.tables, ", ",
                      [](std::string* out, const TableCoverage& table) {
                        out->append(ShortVersion(table.version));
                      })));
  }
  std::map<std::string, const ServerProbe*> by_name;
  std::map<uint64_t, const ServerProbe*> by_instance;
  for (const ServerProbe& server : report.servers) {
    if (!server.error.empty()) continue;
    if (const auto [twin, is_new] =
            by_instance.emplace(server.instance_id, &server);
        !is_new) {
      problems.push_back(absl::StrCat(twin->second->address, " and ",
                                      server.address, " are one server, ",
                                      Printable(server.name)));
      continue;
    }
    if (const auto [twin, is_new] = by_name.emplace(server.name, &server);
        !is_new) {
      problems.push_back(
          absl::StrCat("two servers are named ", Printable(server.name), ": ",
                       twin->second->address, " and ", server.address));
    }
  }
}

// A worker fetches rows by the version that it was started with.
void FindWorkerProblems(const StatusReport& report,
                        std::vector<std::string>& problems) {
  bool some_ready = report.workers.empty();
  for (const WorkerProbe& worker : report.workers) {
    if (!worker.error.empty()) continue;
    some_ready = some_ready || worker.ready;
    const bool served = std::any_of(
        report.tables.begin(), report.tables.end(),
        [&](const TableCoverage& t) { return t.version == worker.version; });
    if (report.tables.empty() || served) continue;
    problems.push_back(absl::StrCat(
        "worker ", worker.address, " computes with table ",
        ShortVersion(worker.version), ", which none of these servers serves"));
  }
  if (!some_ready) problems.push_back("no compute worker is ready");
}

void FindCoverageProblems(const StatusReport& report,
                          std::vector<std::string>& problems) {
  for (const TableCoverage& table : report.tables) {
    for (const LayerCoverage& layer : table.layers) {
      if (layer.partitions_held_by[0] == 0) continue;
      problems.push_back(
          absl::StrCat(layer.partitions_held_by[0], " of ", layer.partitions,
                       " partitions of layer ", layer.layer_id, " of table ",
                       ShortVersion(table.version), " have no server"));
    }
  }
}

std::string ServersAsText(const StatusReport& report) {
  Rows rows = {{"ADDRESS", "NAME", "VERSION", "STATE", "PARTITIONS", "REASON"}};
  for (const ServerProbe& server : report.servers) {
    const bool known = server.error.empty();
    rows.push_back({server.address, OrDash(server.name),
                    ShortVersion(server.version), StateOf(server),
                    known ? WithCommas(server.partitions_held()) : "-",
                    Printable(server.error)});
  }
  return absl::StrCat("table servers\n", FormatTable(rows));
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

Json ServerAsJson(const ServerProbe& server) {
  Json json = {{"address", server.address}, {"state", StateOf(server)}};
  if (!server.error.empty()) {
    json["error"] = server.error;
    return json;
  }
  json["name"] = server.name;
  json["version"] = server.version;
  json["partitions_held"] = server.partitions_held();
  return json;
}

Json WorkerAsJson(const WorkerProbe& worker) {
  Json json = {{"address", worker.address}, {"state", StateOf(worker)}};
  if (!worker.error.empty()) {
    json["error"] = worker.error;
    return json;
  }
  json["name"] = worker.name;
  json["version"] = worker.version;
  json["layer_ids"] = worker.layer_ids;
  return json;
}

Json CoverageAsJson(const TableCoverage& table) {
  Json layers = Json::array();
  for (const LayerCoverage& layer : table.layers) {
    layers.push_back({{"layer_id", layer.layer_id},
                      {"partitions", layer.partitions},
                      {"partitions_held_by", layer.partitions_held_by}});
  }
  return {{"version", table.version}, {"layers", layers}};
}

}  // namespace

StatusReport MakeReport(std::vector<ServerProbe> servers,
                        std::vector<WorkerProbe> workers) {
  StatusReport report;
  report.servers = std::move(servers);
  report.workers = std::move(workers);
  report.tables = CoverageOf(report.servers);
  FindServerProblems(report, report.problems);
  FindCoverageProblems(report, report.problems);
  FindWorkerProblems(report, report.problems);
  return report;
}

std::string ReportAsText(const StatusReport& report) {
  std::string text = ServersAsText(report);
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
  return text;
}

std::string ReportAsJson(const StatusReport& report) {
  Json json = {{"servers", Json::array()},
               {"tables", Json::array()},
               {"workers", Json::array()},
               {"problems", report.problems},
               {"ok", report.problems.empty()}};
  for (const ServerProbe& server : report.servers) {
    json["servers"].push_back(ServerAsJson(server));
  }
  for (const TableCoverage& table : report.tables) {
    json["tables"].push_back(CoverageAsJson(table));
  }
  for (const WorkerProbe& worker : report.workers) {
    json["workers"].push_back(WorkerAsJson(worker));
  }
  // Names come from other processes: bytes that are not UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engram::ctl

#include "engram_client/ctl/status_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

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
  const std::vector<std::string> departed = DepartedNotAsked(report.servers);
  const std::string unseen =
      departed.empty()
          ? ""
          : absl::StrCat(" among these (not asked: ", JoinNames(departed),
                         ", which left)");
  for (const TableCoverage& table : report.tables) {
    for (const LayerCoverage& layer : table.layers) {
      if (layer.partitions_held_by[0] == 0) continue;
      problems.push_back(
          absl::StrCat(layer.partitions_held_by[0], " of ", layer.partitions,
                       " partitions of layer ", layer.layer_id, " of table ",
                       ShortVersion(table.version), " have no server", unseen));
    }
  }
}

// What to know although every request is served.
void FindViewNotes(const StatusReport& report,
                   std::vector<std::string>& notes) {
  const std::string differences = ViewDifferences(report.views);
  if (!differences.empty()) notes.push_back(differences);
  for (const ServerProbe& server : report.servers) {
    if (!server.exchange.has_value()) continue;
    if (!server.exchange->view_digest().empty()) continue;
    const std::string& reason = server.exchange->moves().waiting_for();
    notes.push_back(absl::StrCat(
        Printable(server.name), " has no view of the cluster yet",
        reason.empty() ? "" : absl::StrCat(": ", Printable(reason))));
  }
  std::set<std::string> members;
  for (const SeenView& view : report.views) {
    for (const Member& member : view.members) members.insert(member.name);
  }
  for (const std::string& name : members) {
    const std::vector<std::string> deaf = NotHeardBy(report.servers, name);
    if (deaf.empty()) continue;
    notes.push_back(
        absl::StrCat(Printable(name), " is not heard by ", JoinNames(deaf)));
  }
}

void FindServerNotes(const StatusReport& report,
                     std::vector<std::string>& notes) {
  for (const ServerProbe& server : report.servers) {
    if (StateOf(server) == "left") {
      notes.push_back(
          absl::StrCat(Printable(server.name),
                       " has left and holds nothing: it can be stopped"));
    }
    if (!server.exchange.has_value()) continue;
    const uint64_t failed = server.exchange->moves().failed_loads();
    if (failed == 0) continue;
    notes.push_back(
        absl::StrCat("loads that failed at ", Printable(server.name),
                     " since its start: ", failed, "; its log says why"));
  }
}

}  // namespace

StatusReport MakeReport(std::vector<ServerProbe> servers,
                        std::vector<WorkerProbe> workers) {
  StatusReport report;
  report.servers = std::move(servers);
  report.workers = std::move(workers);
  report.tables = CoverageOf(report.servers);
  report.views = ViewsOf(report.servers);
  FindServerProblems(report, report.problems);
  FindCoverageProblems(report, report.problems);
  FindWorkerProblems(report, report.problems);
  FindViewNotes(report, report.notes);
  FindServerNotes(report, report.notes);
  return report;
}

void AddRates(const StatusReport& before, StatusReport& report) {
  for (const ServerProbe& server : report.servers) {
    if (!server.exchange.has_value()) continue;
    const RateMeter* const meter = LoadRateOf(before, server);
    RateMeter& rate = report.load_rates[server.instance_id];
    if (meter != nullptr) rate = *meter;
    rate.Add(report.time, server.exchange->moves().loaded_bytes());
  }
}

const RateMeter* LoadRateOf(const StatusReport& report,
                            const ServerProbe& server) {
  const auto rate = report.load_rates.find(server.instance_id);
  return rate == report.load_rates.end() ? nullptr : &rate->second;
}

}  // namespace engram::ctl

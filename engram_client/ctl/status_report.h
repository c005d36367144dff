#ifndef ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engram_client/ctl/cluster_views.h"
#include "engram_client/ctl/coverage.h"
#include "engram_client/ctl/probes.h"
#include "engram_client/ctl/rate_meter.h"

namespace engram::ctl {

// The state of a cluster, as far as the given addresses show it.
struct StatusReport {
  absl::Time time = absl::UnixEpoch();  // of the look
  std::vector<ServerProbe> servers;
  std::vector<WorkerProbe> workers;
  std::vector<TableCoverage> tables;
  std::vector<SeenView> views;
  // How fast servers load, by instance id; empty before AddRates.
  std::map<uint64_t, RateMeter> load_rates;
  // Why not every request can be served: no server answered, a partition that
  // none holds, servers of different tables, two servers of one name, a worker
  // of another table, no ready worker among those asked for. Empty: all is
  // well.
  std::vector<std::string> problems;
  // What keeps nobody from serving: views that differ, members that others do
  // not hear, loads that failed, servers that have left.
  std::vector<std::string> notes;
};

StatusReport MakeReport(std::vector<ServerProbe> servers,
                        std::vector<WorkerProbe> workers);

// Goes on with the rates of the look before.
void AddRates(const StatusReport& before, StatusReport& report);

// Null: not known.
const RateMeter* LoadRateOf(const StatusReport& report,
                            const ServerProbe& server);

// Tables for people.
std::string ReportAsText(const StatusReport& report);
// One JSON object, for programs; versions in full.
enum class JsonStyle { kIndented, kOneLine };
std::string ReportAsJson(const StatusReport& report, JsonStyle style);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_

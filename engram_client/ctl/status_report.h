#ifndef ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_

#include <string>
#include <vector>

#include "engram_client/ctl/coverage.h"

namespace engram::ctl {

// The state of a cluster, as far as the given addresses show it.
struct StatusReport {
  std::vector<ServerProbe> servers;
  std::vector<WorkerProbe> workers;
  std::vector<TableCoverage> tables;
  // Why not every request can be served: no server answered, a partition that
  // none holds, servers of different tables, two servers of one name, a worker
  // of another table, no ready worker among those asked for. Empty: all is
  // well.
  std::vector<std::string> problems;
};

StatusReport MakeReport(std::vector<ServerProbe> servers,
                        std::vector<WorkerProbe> workers);

// Tables for people.
std::string ReportAsText(const StatusReport& report);
// One JSON object, for programs; versions in full.
std::string ReportAsJson(const StatusReport& report);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_STATUS_REPORT_H_

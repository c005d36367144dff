// engramctl status: what each server and worker is doing, and whether every
// partition has a server.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/status_probe.h"
#include "engram_client/ctl/status_report.h"

namespace engram::ctl {
namespace {

struct StatusFlags {
  std::string tables;
  std::string workers;
  bool json = false;
  double timeout_seconds = 5;
};

absl::StatusOr<int> RunStatus(const StatusFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> tables,
                          ParseAddressList(flags.tables));
  std::vector<std::string> workers;
  if (!flags.workers.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(workers, ParseAddressList(flags.workers));
  }
  const absl::Duration timeout = absl::Seconds(flags.timeout_seconds);
  std::vector<ServerProbe> server_probes =
      ProbeServers(tables, absl::Now() + timeout);
  std::vector<WorkerProbe> worker_probes =
      ProbeWorkers(workers, absl::Now() + timeout);
  const StatusReport report =
      MakeReport(std::move(server_probes), std::move(worker_probes));
  const std::string text =
      flags.json ? ReportAsJson(report) : ReportAsText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.problems.empty() ? 0 : 1;
}

}  // namespace

void AddStatus(CLI::App& app, Action& action) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* command = app.add_subcommand(
      "status", "What servers and workers are doing, and what they cover");
  command->add_option("--tables", flags->tables, "addresses of table servers")
      ->required();
  command->add_option("--worker", flags->workers,
                      "addresses of compute workers");
  command->add_flag("--json", flags->json, "print JSON");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "for each round of answers (default 5)")
      ->check(Seconds(0.001, 86400));
  command->footer(
      "Exit code 1: some partition has no server, servers or tables are "
      "mixed up, or none of\nthe workers is ready. Draining servers do not "
      "count as holders.\n\nExample:\n  engramctl status --tables "
      "127.0.0.1:7001,127.0.0.1:7002 --worker 127.0.0.1:7100");
  command->callback(
      [flags, &action] { action = [flags] { return RunStatus(*flags); }; });
}

}  // namespace engram::ctl

// engramctl status: what each server and worker is doing, what moves, and
// whether every partition has a server.

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/status_probe.h"
#include "engram_client/ctl/status_report.h"
#include "engram_client/ctl/table_addresses.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kWatchInterval = absl::Seconds(1);
constexpr char kClearScreen[] = "\x1b[H\x1b[2J";

struct StatusFlags {
  std::string tables;
  std::string workers;
  bool json = false;
  bool watch = false;
  bool only_these = false;
  double timeout_seconds = 5;
};

struct Addresses {
  std::vector<std::string> tables;
  std::vector<std::string> workers;
};

absl::StatusOr<Addresses> ReadAddresses(const StatusFlags& flags) {
  Addresses addresses;
  ENGRAM_ASSIGN_OR_RETURN(
      addresses.tables,
      TableAddresses(flags.tables,
                     absl::Now() + absl::Seconds(flags.timeout_seconds)));
  if (!flags.workers.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(addresses.workers, ParseAddressList(flags.workers));
  }
  return addresses;
}

StatusReport Look(const StatusFlags& flags, const Addresses& addresses,
                  const StatusReport& before) {
  const absl::Duration timeout = absl::Seconds(flags.timeout_seconds);
  std::vector<ServerProbe> servers =
      flags.only_these
          ? ProbeServers(addresses.tables, absl::Now() + timeout)
          : ProbeCluster(addresses.tables, timeout, before.servers);
  std::vector<WorkerProbe> workers =
      ProbeWorkers(addresses.workers, absl::Now() + timeout);
  StatusReport report = MakeReport(std::move(servers), std::move(workers));
  report.time = absl::Now();
  AddRates(before, report);
  return report;
}

absl::StatusOr<int> LookOnce(const StatusFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const Addresses addresses, ReadAddresses(flags));
  const StatusReport report = Look(flags, addresses, {});
  const std::string text = flags.json
                               ? ReportAsJson(report, JsonStyle::kIndented)
                               : ReportAsText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.problems.empty() ? 0 : 1;
}

std::string WatchedAsText(const StatusReport& report) {
  return absl::StrCat(
      isatty(STDOUT_FILENO) != 0 ? kClearScreen : "",
      absl::FormatTime("%H:%M:%S", report.time, absl::LocalTimeZone()), " ",
      ReportAsText(report), "\n");
}

absl::StatusOr<int> Watch(const StatusFlags& flags) {
  const ShutdownSignal signal;
  ENGRAM_ASSIGN_OR_RETURN(Addresses addresses, ReadAddresses(flags));
  StatusReport before;
  while (true) {
    const absl::Time began = absl::Now();
    StatusReport report = Look(flags, addresses, before);
    const std::string text = flags.json
                                 ? ReportAsJson(report, JsonStyle::kOneLine)
                                 : WatchedAsText(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
    const bool written = std::fflush(stdout) == 0;
    if (!written || signal.WaitUntil(began + kWatchInterval)) {
      return report.problems.empty() ? 0 : 1;
    }
    before = std::move(report);
    // A list that cannot be read for a while stays what it was.
    absl::StatusOr<Addresses> read = ReadAddresses(flags);
    if (read.ok()) addresses = *std::move(read);
  }
}

constexpr char kFooter[] =
    R"(One server's address is enough: the others are found by what it says of its
cluster (--only-these asks nobody else). A server that leaves is no member any
more: give its address too, or a list that has it.

States: ready; loading: something that it owns is not there yet; draining: its
process is about to end; leaving: for good, others take over what it holds; left:
they have, it may be stopped; unreachable. HELD partitions are verified and
answered for; OWNED are those that its view of the cluster gives it. Servers with
the same VIEW agree on who owns what. HEARD BY: of the servers that see it as a
member, how many it answered lately. TO FREE: held, not owned, and not all of
their owners have them yet; LINGERING: they have, it still answers for a while.
Servers of older releases do not tell these.

--watch looks every second until it is interrupted; with --json it prints an
object a line. Each round of questions waits --timeout-seconds for servers that
do not answer. The JSON is described in engram_client/ctl/status_json.cc.

Exit code 1: some partition has no server, servers or tables are mixed up, or
none of the workers is ready. Draining servers count as holders: they answer
nearly to their end. With --watch, as of the last look.

Examples:
  engramctl status --tables 127.0.0.1:7001 --worker 127.0.0.1:7100
  engramctl status --watch --tables \
    dns:_grpc._tcp.engram-table.engram.svc.cluster.local)";

}  // namespace

void AddStatus(CLI::App& app, Action& action) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* command = app.add_subcommand(
      "status",
      "What servers and workers are doing, what moves, and what they cover");
  command->add_option("--tables", flags->tables, kTablesHelp)->required();
  command->add_option("--worker", flags->workers,
                      "addresses of compute workers");
  command->add_flag("--watch", flags->watch, "look again every second");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--only-these", flags->only_these,
                    "do not look for other members of the cluster");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "for each round of answers (default 5)")
      ->check(Seconds(0.001, 86400));
  command->footer(kFooter);
  command->callback([flags, &action] {
    action = [flags] {
      return flags->watch ? Watch(*flags) : LookOnce(*flags);
    };
  });
}

}  // namespace engram::ctl

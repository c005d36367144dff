// engramctl drain: a server leaves the cluster for good, watched until it holds
// nothing any more.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/drain_progress.h"
#include "engram_client/ctl/find_server.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/progress_line.h"
#include "engram_client/ctl/status_probe.h"
#include "engram_client/ctl/table_addresses.h"
#include "engram_client/ctl/table_calls.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr absl::Duration kLookInterval = absl::Seconds(1);

struct DrainFlags {
  std::string server_name;
  std::string tables;
  bool no_wait = false;
  double timeout_seconds = 3600;
};

absl::StatusOr<ServerProbe> FindByName(const DrainFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(
      const std::vector<std::string> addresses,
      TableAddresses(flags.tables, absl::Now() + kCallTimeout));
  const std::vector<ServerProbe> servers =
      ProbeCluster(addresses, kCallTimeout, {});
  return FindServer(servers, flags.server_name);
}

// Once it leaves it is no member any more, so only its address finds it.
std::string StillUnderWay(const std::string& why, const ServerProbe& server,
                          const DrainProgress& progress) {
  return absl::StrCat(why, ". ", progress.text(absl::Now()),
                      ". It goes on without this command; to watch, run it "
                      "again with --tables ",
                      server.address);
}

bool SeesNobodyElse(const ServerProbe& server) {
  const auto& members = server.exchange->members();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return member.name() == server.name;
  });
}

absl::StatusOr<int> Ended(DrainProgress::State state, const DrainFlags& flags,
                          const DrainProgress& progress) {
  if (state == DrainProgress::State::kRestarted) {
    return absl::AbortedError(
        absl::StrCat(flags.server_name,
                     " was restarted, which brings it back into the cluster"));
  }
  if (state == DrainProgress::State::kLost) {
    return absl::UnavailableError(
        absl::StrCat(progress.text(absl::Now()),
                     ". `engramctl status` shows what the others hold"));
  }
  std::printf(
      "%s holds nothing any more: it can be stopped. Take it out of the list "
      "of members too: a restart brings it back.\n",
      flags.server_name.c_str());
  return 0;
}

absl::StatusOr<int> WaitUntilEmpty(const DrainFlags& flags,
                                   const ServerProbe& server, TableCalls& calls,
                                   const ShutdownSignal& signal) {
  const absl::Time deadline =
      absl::Now() + absl::Seconds(flags.timeout_seconds);
  DrainProgress progress(flags.server_name, server.instance_id, absl::Now());
  ProgressLine line;
  while (true) {
    const absl::Time began = absl::Now();
    const absl::StatusOr<v1::ExchangeResponse> answer =
        calls.Exchange(began + kCallTimeout);
    const absl::Time now = absl::Now();
    const DrainProgress::State state =
        answer.ok() ? progress.Answered(*answer, now)
                    : progress.Silent(answer.status(), now);
    if (state != DrainProgress::State::kUnderWay) {
      line.Wipe();
      return Ended(state, flags, progress);
    }
    line.Show(progress.text(now), now);
    if (signal.WaitUntil(std::min(began + kLookInterval, deadline))) {
      line.Wipe();
      std::fprintf(stderr, "engramctl: %s\n",
                   StillUnderWay("interrupted", server, progress).c_str());
      return kInterruptedExitCode;
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(StillUnderWay(
          absl::StrCat("not done after ", flags.timeout_seconds, " s"), server,
          progress));
    }
  }
}

absl::StatusOr<int> RunDrain(const DrainFlags& flags) {
  const ShutdownSignal signal;
  ENGRAM_ASSIGN_OR_RETURN(const ServerProbe server, FindByName(flags));
  if (signal.WaitUntil(absl::InfinitePast())) {
    std::fprintf(stderr, "engramctl: interrupted, nobody was told to leave\n");
    return kInterruptedExitCode;
  }
  TableCalls calls(server.address);
  const absl::Status left =
      calls.Leave(flags.server_name, absl::Now() + kCallTimeout);
  if (!left.ok()) {
    return Annotate(left, absl::StrCat(flags.server_name, " at ",
                                       server.address, " does not leave"));
  }
  if (SeesNobodyElse(server)) {
    std::fprintf(stderr,
                 "%s sees no other member: nobody can take over what it "
                 "holds\n",
                 flags.server_name.c_str());
  }
  if (!flags.no_wait) return WaitUntilEmpty(flags, server, calls, signal);
  std::printf(
      "%s leaves; `engramctl status --watch --tables %s` shows how far it is\n",
      flags.server_name.c_str(), server.address.c_str());
  return 0;
}

constexpr char kFooter[] =
    R"(The server leaves the cluster for good: the others load what it holds, it
answers for each partition until all its new owners have it, and then stays,
empty, until it is stopped. Nothing is lost if this command ends before that: the
server goes on. A restart brings it back, so take it out of the list of members
too. To stop a server that comes back (an update, say) just stop it.

Exit code: 0 it holds nothing any more (with --no-wait: it has been told), 1
failed or not done in time (the reason is on stderr), 2 wrong usage, 130
interrupted.

Examples:
  engramctl drain engram-table-3 --tables 127.0.0.1:7001
  engramctl drain engram-table-3 --tables file:members --no-wait)";

}  // namespace

void AddDrain(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App* command = app.add_subcommand(
      "drain", "Have a table server hand over all it holds and leave");
  command->add_option("NAME", flags->server_name, "the server's name")
      ->required();
  command->add_option("--tables", flags->tables, kTablesHelp)->required();
  command->add_flag("--no-wait", flags->no_wait,
                    "tell the server and end; it goes on alone");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "to wait until it holds nothing (default 3600)")
      ->check(Seconds(0.001, 7 * 86400));
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunDrain(*flags); }; });
}

}  // namespace engram::ctl

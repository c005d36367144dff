// engramctl heat: which rows of running servers are asked for how often.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/atomic_file.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/heat_merge.h"
#include "engram_client/ctl/heat_recordings.h"
#include "engram_client/ctl/heat_report.h"
#include "engram_client/ctl/progress_line.h"
#include "engram_client/ctl/status_probe.h"
#include "engram_client/ctl/table_addresses.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kLookInterval = absl::Milliseconds(200);
// Each has a thread.
constexpr size_t kMaxServers = 256;

struct HeatFlags {
  std::string tables;
  std::string json;
  double seconds = 60;
  uint64_t top = 10;
  uint64_t sample_rows = 1 << 16;
  bool only_these = false;
  double timeout_seconds = 10;
};

// All that are meant, whether they answer or not.
absl::StatusOr<std::vector<std::string>> FindServers(const HeatFlags& flags) {
  const absl::Duration timeout = absl::Seconds(flags.timeout_seconds);
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> given,
                          TableAddresses(flags.tables, absl::Now() + timeout));
  const std::vector<ServerProbe> servers =
      flags.only_these ? ProbeServers(given, absl::Now() + timeout)
                       : ProbeCluster(given, timeout, {});
  std::vector<std::string> addresses;
  std::vector<HeatServer> known;
  for (const ServerProbe& server : servers) {
    addresses.push_back(server.address);
    if (!server.error.empty()) continue;
    known.push_back({server.address, server.version, server.instance_id});
  }
  // Before anything is recorded for nothing.
  ENGRAM_RETURN_IF_ERROR(CheckAlike(known));
  if (addresses.size() > kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " servers, the limit is ", kMaxServers,
                     ": give some of their addresses with --only-these"));
  }
  return addresses;
}

std::string ProgressText(const HeatRecordings::Progress& progress,
                         size_t servers, absl::Duration duration) {
  const absl::Duration left =
      duration - absl::Milliseconds(progress.elapsed_ms);
  return absl::StrCat(
      progress.recording, " of ", servers, " servers record, ",
      WithCommas(progress.lookups), " lookups, ",
      WithCommas(progress.sampled_rows), " rows counted one by one, ",
      ShortDuration(std::max(left, absl::ZeroDuration())), " left");
}

// False: interrupted.
bool Wait(const HeatRecordings& recordings, size_t servers,
          absl::Duration duration, const ShutdownSignal& signal) {
  ProgressLine line;
  while (!recordings.ended()) {
    const absl::Time now = absl::Now();
    line.Show(ProgressText(recordings.progress(), servers, duration), now);
    if (signal.WaitUntil(now + kLookInterval)) return false;
  }
  return true;
}

absl::Status Write(AtomicFile* file, const HeatReport& report) {
  const std::string text = HeatAsText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (file == nullptr) return absl::OkStatus();
  const std::string json = HeatAsJson(report);
  ENGRAM_RETURN_IF_ERROR(file->Append(
      {reinterpret_cast<const std::byte*>(json.data()), json.size()}));
  return file->Commit();
}

// Nonzero: some server did not tell.
int SayWhoFailed(absl::Span<const ServerHeat> servers) {
  int code = 0;
  for (const ServerHeat& server : servers) {
    if (server.error.empty()) continue;
    std::fprintf(stderr, "engramctl: %s%s%s: %s\n",
                 Printable(server.name).c_str(),
                 server.name.empty() ? "" : " at ", server.address.c_str(),
                 Printable(server.error).c_str());
    code = 1;
  }
  return code;
}

absl::StatusOr<int> RunHeat(const HeatFlags& flags) {
  ShutdownSignal signal;
  // Opened first, so that a long recording is not for nothing.
  std::unique_ptr<AtomicFile> file;
  if (!flags.json.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(file, AtomicFile::Create(flags.json));
  }
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                          FindServers(flags));
  const absl::Duration duration =
      absl::Ceil(absl::Seconds(flags.seconds), absl::Milliseconds(1));
  HeatRecordings recordings(addresses,
                            {.duration = duration,
                             .max_sampled_rows = flags.sample_rows,
                             .timeout = absl::Seconds(flags.timeout_seconds)});
  if (!Wait(recordings, addresses.size(), duration, signal)) {
    signal.EndAtTheNext();  // a server that is silent is waited for
    std::fprintf(stderr, "engramctl: interrupted, nothing is kept\n");
    return kInterruptedExitCode;
  }
  HeatReport report{
      .time = absl::Now(), .duration = duration, .servers = recordings.Take()};
  const int code = SayWhoFailed(report.servers);
  ENGRAM_ASSIGN_OR_RETURN(report.heat, MergeHeat(report.servers));
  report.summary = Summarize(report.heat, flags.top);
  ENGRAM_RETURN_IF_ERROR(Write(file.get(), report));
  return code;
}

constexpr char kFooter[] =
    R"(Counts which rows are asked of all servers of the cluster for a while: what is
needed to size --cache-mb and --host-mb and to see whether some partitions are
hotter than others. Rows that clients answer from their own caches, and all but
one of the same rows of a gather, never reach a server and are not counted.
Counting is off but for this command, and costs gathers little meanwhile. A
server records once at a time.

OF LOOKUPS beside HOTTEST ROWS: what share of all lookups the hottest so many
rows get. No cache of so many rows answers more; a good one comes near. CACHE MB
is what --cache-mb has room for them, over all servers: divide by their number,
and multiply by the replicas, since each caches what it is asked for. The lines
below the gap start from the share.

MAX / MEAN and P99 / MEAN compare the partitions that were asked for at all. Near
1: no partition deserves more replicas than others.

docs/heat.md has an example and how it is counted; the JSON is described in
engram_client/ctl/heat_json.cc.

Exit code: 0 done, 1 failed or some server did not tell (the reasons are on
stderr), 2 wrong usage, 130 interrupted.

Examples:
  engramctl heat --tables 127.0.0.1:7001 --seconds 300 --json heat.json
  engramctl heat --tables dns:_grpc._tcp.engram-table.engram.svc.cluster.local)";

}  // namespace

void AddHeat(CLI::App& app, Action& action) {
  auto flags = std::make_shared<HeatFlags>();
  CLI::App* command = app.add_subcommand(
      "heat", "Which rows of running table servers are asked for how often");
  command->add_option("--tables", flags->tables, kTablesHelp)->required();
  command->add_option("--seconds", flags->seconds, "to count for (default 60)")
      ->check(Seconds(0.001, 3600));
  command->add_option("--json", flags->json, "write all of it to this file");
  command->add_option("--top", flags->top, "hottest rows to name (default 10)")
      ->check(WholeNumber(0, 10000));
  command
      ->add_option("--sample-rows", flags->sample_rows,
                   "rows that each server counts one by one, 40 bytes each "
                   "(default 65536)")
      ->check(WholeNumber(64, 1 << 20));
  command->add_flag("--only-these", flags->only_these,
                    "do not look for other members of the cluster");
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "to find the servers, and for what they tell in the end "
                   "(default 10)")
      ->check(Seconds(0.001, 86400));
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunHeat(*flags); }; });
}

}  // namespace engram::ctl

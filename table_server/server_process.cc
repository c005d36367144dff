#include "table_server/server_process.h"

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/build_info.h"
#include "core/base/flag_checks.h"
#include "core/base/log.h"

namespace engram {
namespace {

int Fail(const absl::Status& status) {
  spdlog::error("{}: {}", absl::StatusCodeToString(status.code()),
                std::string(status.message()));
  return 1;
}

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void AddTierFlags(CLI::App& app, ServerFlags& flags) {
  app.add_option(
      "--store", flags.server.tiers.store,
      "flat:DIR or rocksdb:DIR: a copy of the partitions on a local disk, from "
      "which the next start loads, and from which rows are read as "
      "they are asked for where memory is too small for all");
  app.add_option("--store-gb", flags.store_gb,
                 "What DIR may take, in GB; 0: no limit. It must hold all that "
                 "the server owns, and other table versions, which count as "
                 "they were at the start: what another server puts there "
                 "later is not limited by it. "
                 "With a partition more, what moves between servers finds room "
                 "at once")
      ->check(WholeNumber(0, 1 << 20))
      ->capture_default_str();
  app.add_flag("--store-remove-other-versions",
               flags.server.tiers.remove_other_versions,
               "Remove partitions of other table versions from DIR at the "
               "start, but for those that another server uses; otherwise they "
               "are left there");
  app.add_option("--host-mb", flags.host_mb,
                 "With --store: rows kept whole in memory, in MB; 0: none, all "
                 "are read from it. Without this flag all that memory is free "
                 "for")
      ->check(WholeNumber(0, 1 << 30));
  app.add_option("--cache-mb", flags.cache_mb,
                 "With --store: memory for the rows that are asked for most of "
                 "those that are not kept whole, in MB; 0: none")
      ->check(WholeNumber(0, 1 << 30))
      ->capture_default_str();
}

}  // namespace

void AddServerFlags(CLI::App& app, ServerFlags& flags) {
  TableServer::Options& server = flags.server;
  app.add_option("--checkpoint", server.table.checkpoint_dir,
                 "Checkpoint directory with engram_manifest.json, or its "
                 "https:// or http:// URL, on a server that gives byte ranges");
  app.add_option("--token-file", server.table.http.token_file,
                 "Bearer token for that URL; read again when it changes");
  app.add_option("--ca-file", server.table.http.ca_file,
                 "CA certificates (PEM) for it instead of the system's");
  app.add_option(
         "--source", server.table.source,
         "checkpoint (then peers), synthetic:SEED (rows are computed) or "
         "peers (needs --manifest, or a --store that has one)")
      ->capture_default_str();
  app.add_option("--config", server.table.config_path,
                 "config.json of a synthetic table");
  app.add_option("--preset", server.table.preset,
                 "tiny, odd, v41-mini or v41: shapes of a synthetic table");
  app.add_option("--manifest", server.table.manifest_path,
                 "engram_manifest.json of --source peers, or of a checkpoint "
                 "by URL where none lies beside it");
  AddTierFlags(app, flags);
  app.add_option("--listen", server.listen,
                 "HOST:PORT (port 0 takes a free one) or unix:PATH")
      ->required();
  app.add_option("--admin", server.admin_listen,
                 "HOST:PORT for /metrics, /healthz, /readyz");
  app.add_option("--server-name", server.server_name,
                 "This server's name among the members")
      ->required();
  app.add_option("--members", server.members,
                 "static:NAME=ADDRESS,..., file:PATH (lines NAME ADDRESS "
                 "[CAPACITY]) or dns:NAME[@IP:PORT] (SRV records); without "
                 "it this server alone");
  app.add_option("--expected-servers", server.expected_servers,
                 "Nothing is placed before so many are there for the first "
                 "time")
      ->check(WholeNumber(0, 4096))
      ->capture_default_str();
  app.add_option("--stability-seconds", flags.stability_seconds,
                 "How long members must stay the same before they count")
      ->check(Seconds(0, 3600))
      ->capture_default_str();
  app.add_option("--death-delay-seconds", flags.death_delay_seconds,
                 "How long a member that is silent, or that DNS has "
                 "forgotten, still is one")
      ->check(Seconds(0, 1e6))
      ->capture_default_str();
  app.add_option("--replicas", server.replicas, "Owners of a partition")
      ->check(WholeNumber(1, 4096))
      ->capture_default_str();
  app.add_option("--layers", flags.layers, "Serve only these layers")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  app.add_option("--load-threads", server.load_threads,
                 "While it loads what no other server holds; 0: one for each "
                 "core, at least 8")
      ->check(WholeNumber(0, 1024))
      ->capture_default_str();
  app.add_option("--move-threads", server.move_threads,
                 "Threads that load what others hold too")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  app.add_option("--move-mb-per-second", flags.move_mb_per_second,
                 "What they load at most, in MB; 0: no bound")
      ->check(WholeNumber(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--move-share", server.move_pace.time_share,
                 "Of the time, that they load; 0: no bound")
      ->check(CLI::Range(0.0, 1024.0))
      ->capture_default_str();
  app.add_option("--announce-linger-seconds", flags.announce_linger_seconds,
                 "A partition that its new owners hold stays announced so long")
      ->check(Seconds(0, 3600))
      ->capture_default_str();
  app.add_option("--answer-linger-seconds", flags.answer_linger_seconds,
                 "and is answered for so long after that")
      ->check(Seconds(0, 3600))
      ->capture_default_str();
  app.add_option("--rpc-threads", server.rpc_threads,
                 "Threads that serve gathers; 0: three quarters of the cores")
      ->check(WholeNumber(0, 1024))
      ->capture_default_str();
  app.add_option("--worker-threads", server.worker_threads,
                 "Threads that gather rows; 0: the RPC threads do")
      ->check(WholeNumber(0, 1024))
      ->capture_default_str();
  app.add_option("--max-inflight-gathers", server.limits.max_gathers_in_flight,
                 "Gathers admitted at once; more are OVERLOADED")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "Time clients get to go elsewhere after SIGTERM")
      ->check(Seconds(0, 3600))
      ->capture_default_str();
  app.add_option("--hand-over-seconds", flags.hand_over_seconds,
                 "Time others get after SIGTERM to take over what only this "
                 "server holds")
      ->check(Seconds(0, 86400))
      ->capture_default_str();
  app.set_version_flag("--version",
                       absl::StrCat("engram-table-server ", kBuildVersion,
                                    " (commit ", kBuildCommit, ")"));
}

int RunServer(ServerFlags flags, ShutdownSignal& signal) {
  TableServer::Options options = std::move(flags.server);
  for (const uint32_t layer : flags.layers) {
    options.layers.push_back(LayerId{layer});
  }
  options.drain_grace = absl::Seconds(flags.drain_seconds);
  options.drain_hand_over = absl::Seconds(flags.hand_over_seconds);
  options.stability_window = absl::Seconds(flags.stability_seconds);
  options.death_delay = absl::Seconds(flags.death_delay_seconds);
  options.hand_over.announce_linger =
      absl::Seconds(flags.announce_linger_seconds);
  options.hand_over.answer_linger = absl::Seconds(flags.answer_linger_seconds);
  options.move_pace.bytes_per_second = flags.move_mb_per_second * 1'000'000;
  options.tiers.max_store_bytes = flags.store_gb * 1'000'000'000;
  options.tiers.cache_bytes = flags.cache_mb * 1'000'000;
  if (flags.host_mb.has_value()) {
    options.tiers.max_host_bytes = *flags.host_mb * 1'000'000;
  }
  options.progress_out = stderr;
  options.table.while_opening = [&signal] {
    return signal.WaitUntil(absl::InfinitePast())
               ? absl::CancelledError("told to end while it started")
               : absl::OkStatus();
  };
  absl::StatusOr<std::unique_ptr<TableServer>> server =
      TableServer::Create(std::move(options));
  if (absl::IsCancelled(server.status()) &&
      signal.WaitUntil(absl::InfinitePast())) {
    spdlog::info("stopped before it listened");
    return 0;
  }
  if (!server.ok()) return Fail(server.status());
  spdlog::info("table version {}, listening on {}", (*server)->version(),
               (*server)->address());
  if (!(*server)->admin_address().empty()) {
    spdlog::info("admin port on {}", (*server)->admin_address());
  }
  PrintLine("listening on " + (*server)->address());
  bool ready = false;
  bool stop = false;
  while (!stop && !ready) {
    const absl::Status status =
        (*server)->WaitUntilReady(absl::Now() + absl::Milliseconds(100));
    ready = status.ok();
    if (!ready && !absl::IsDeadlineExceeded(status)) return Fail(status);
    stop = signal.WaitUntil(absl::InfinitePast());
  }
  if (ready) PrintLine("ready");
  signal.WaitUntil(absl::InfiniteFuture());
  signal.EndAtTheNext();
  (*server)->Drain();
  spdlog::info("stopped");
  return 0;
}

}  // namespace engram

// engram-compute-worker: Engram steps over gRPC, rows from table servers.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compute/worker/worker.h"
#include "core/base/build_info.h"
#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "core/base/open_files.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/table_servers.h"

namespace engram {
namespace {

// How long steps in flight may go on after the time for callers to leave.
constexpr absl::Duration kDrainTimeout = absl::Seconds(30);

constexpr const char* kInvariant = ToString(ProjectionMode::kInvariant);
constexpr const char* kFast = ToString(ProjectionMode::kFast);

struct Flags {
  std::string tables;
  std::string device = "auto";
  std::string projection = kInvariant;
  double step_timeout_seconds = 60;
  double drain_seconds = 2;
  Worker::Options worker;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--checkpoint", flags.worker.checkpoint_dir,
                 "Directory with config.json, safetensors, token map and "
                 "engram_manifest.json")
      ->required();
  app.add_option("--tables", flags.tables,
                 "Table servers: host:port or unix:PATH, comma-separated, or "
                 "who they are now: file:PATH, dns:NAME[@IP:PORT] or "
                 "static:NAME=ADDRESS,...")
      ->required();
  app.add_option("--listen", flags.worker.listen,
                 "host:port (port 0 takes a free one) or unix:PATH")
      ->required();
  app.add_option("--row-cache-bytes", flags.worker.row_cache_bytes,
                 "Memory for rows that are asked for often, 0 for none")
      ->capture_default_str();
  app.add_flag("--crc32c", flags.worker.want_crc32c,
               "Table servers sum each reply, and rows that arrive damaged are "
               "asked for again");
  app.add_option("--token-map", flags.worker.token_map_path,
                 "Token map, default engram_token_map.bin in the checkpoint");
  app.add_option("--worker-name", flags.worker.worker_name,
                 "Name in errors and GetModel, default the host's name");
  app.add_option("--admin", flags.worker.admin,
                 "host:port of /metrics, /healthz and /readyz");
  app.add_option("--threads", flags.worker.compute_threads,
                 "Compute threads, 0 for one a core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--device", flags.device,
                 "auto (a GPU if one will do, else the CPU), cpu, cuda or "
                 "cuda:N")
      ->capture_default_str();
  app.add_option("--projection", flags.projection,
                 "invariant (the same bits for any number of tokens) or fast; "
                 "a GPU's, for the CPU's is invariant")
      ->check(CLI::IsMember({kInvariant, kFast}))
      ->capture_default_str();
  app.add_option("--max-tokens-per-step", flags.worker.max_tokens_per_step,
                 "Tokens of all sequences of a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--step-timeout-seconds", flags.step_timeout_seconds,
                 "A step that is not done by then ends")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "Time callers get to go elsewhere after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.set_version_flag(
      "--version", absl::StrCat("engram-compute-worker ", kBuildVersion, " (",
                                kBuildCommit, ")"));
}

absl::Status CheckFlags(Flags& flags) {
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckAddress(flags.worker.listen), "--listen"));
  auto device = DeviceRequest::Parse(flags.device);
  ENGRAM_RETURN_IF_ERROR(Annotate(device.status(), "--device"));
  flags.worker.compute = {.device = *device,
                          .projection = flags.projection == kFast
                                            ? ProjectionMode::kFast
                                            : ProjectionMode::kInvariant};
  auto tables = ParseTableServers(flags.tables);
  ENGRAM_RETURN_IF_ERROR(Annotate(tables.status(), "--tables"));
  flags.worker.table_addresses = std::move(tables->addresses);
  flags.worker.table_members = std::move(tables->members);
  flags.worker.step_timeout = absl::Seconds(flags.step_timeout_seconds);
  flags.worker.drain_grace = absl::Seconds(flags.drain_seconds);
  return absl::OkStatus();
}

// Waits for table servers and a signal at once. OK: ready; CANCELLED: told to
// stop before that.
absl::Status AwaitReady(Worker& worker, const ShutdownSignal& signal) {
  constexpr absl::Duration kSlice = absl::Milliseconds(50);
  while (true) {
    const absl::Status status = worker.WaitUntilReady(absl::Now() + kSlice);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (signal.WaitUntil(absl::InfinitePast())) {
      return absl::CancelledError("stopped before it was ready");
    }
  }
}

// OK: told to stop. Else the device has failed, and whoever restarts this
// process helps more than it does by staying.
absl::Status ServeUntilStopped(const Worker& worker,
                               const ShutdownSignal& signal) {
  constexpr absl::Duration kSlice = absl::Milliseconds(500);
  while (!signal.WaitUntil(absl::Now() + kSlice)) {
    ENGRAM_RETURN_IF_ERROR(worker.health());
  }
  return absl::OkStatus();
}

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

absl::Status Run(Flags& flags) {
  const ShutdownSignal signal;
  ENGRAM_RETURN_IF_ERROR(CheckFlags(flags));
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                          Worker::Start(flags.worker));
  PrintLine(absl::StrCat("listening on ", worker->address()));
  absl::Status served = AwaitReady(*worker, signal);
  if (served.ok()) {
    PrintLine("ready");
    served = ServeUntilStopped(*worker, signal);
  } else if (absl::IsCancelled(served)) {
    served = absl::OkStatus();
  } else {
    return served;
  }
  worker->Drain(absl::Now() + flags.worker.drain_grace + kDrainTimeout);
  spdlog::info("stopped");
  return served;
}

}  // namespace
}  // namespace engram

int main(int argc, char** argv) {
  engram::InitLogging("engram-compute-worker");
  engram::TuneMallocForLargeMessages();
  engram::RaiseOpenFileLimit();
  CLI::App app("Computes Engram steps with rows from table servers.");
  engram::Flags flags;
  engram::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = engram::Run(flags);
  if (!status.ok()) {
    spdlog::error("{}", status.ToString());
    return 1;
  }
  return 0;
}

// The table server over a tier that lies, fails and dawdles: takes the flags
// of engram-table-server, and the commands of tier_faults.h on stdin.

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "core/base/flag_checks.h"
#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "core/base/open_files.h"
#include "core/rpc/shutdown_signal.h"
#include "table_server/server_process.h"
#include "tests/fault/faulty_table_server/command_reader.h"
#include "tests/fault/faulty_table_server/faulty_tier.h"
#include "tests/fault/faulty_table_server/tier_faults.h"

int main(int argc, char** argv) {
  using namespace engram;
  ShutdownSignal signal;
  InitLogging("engram-faulty-table-server");
  TuneMallocForLargeMessages();
  RaiseOpenFileLimit();
  CLI::App app("A table server with faults, switched through stdin.");
  ServerFlags flags;
  AddServerFlags(app, flags);
  uint64_t seed = 1;
  app.add_option("--fault-seed", seed, "Of everything random")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fault::TierFaults faults(seed);
  flags.server.decorate_tier = [&](std::unique_ptr<RowTier> tier) {
    return std::make_unique<fault::FaultyTier>(std::move(tier), faults);
  };
  const fault::CommandReader reader(
      [&](const fault::Command& command) { return faults.Obey(command); });
  return RunServer(std::move(flags), signal);
}

#ifndef ENGRAM_TABLE_SERVER_SERVER_PROCESS_H_
#define ENGRAM_TABLE_SERVER_SERVER_PROCESS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/rpc/shutdown_signal.h"
#include "table_server/server.h"

namespace engram {

// A table server as a process of its own, from its command line to its exit
// code: what engram-table-server is, and programs that decorate its tier.
struct ServerFlags {
  TableServer::Options server;
  // Options that CLI11 reads into other types than TableServer has.
  std::vector<uint32_t> layers;
  double drain_seconds = 2;
  double hand_over_seconds = 60;
  double stability_seconds = 5;
  double death_delay_seconds = 300;
  double announce_linger_seconds = 5;
  double answer_linger_seconds = 10;
  uint64_t move_mb_per_second = 0;
  uint64_t store_gb = 0;
  std::optional<uint64_t> host_mb;
  uint64_t cache_mb = 256;
};

// `flags` must outlive the parsing.
void AddServerFlags(CLI::App& app, ServerFlags& flags);

// Serves until `signal`, then drains, which the next signal ends at once; says
// "listening on ADDRESS" and "ready" on stdout, all else in the log. Returns
// the exit code.
int RunServer(ServerFlags flags, ShutdownSignal& signal);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVER_PROCESS_H_

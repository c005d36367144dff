#ifndef ENGRAM_ENGRAM_CLIENT_CTL_TABLE_SOURCE_FLAGS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_TABLE_SOURCE_FLAGS_H_

#include <CLI/CLI.hpp>

#include "core/rpc/shutdown_signal.h"
#include "table_server/loading/table_source.h"

namespace engram::ctl {

// Where a checkpoint lies and how to get at it, as the server's flags have it:
// --checkpoint, --token-file, --ca-file. Returns the first.
CLI::Option* AddCheckpointFlags(CLI::App& command, TableSourceOptions& options);

// Opening a checkpoint by URL ends, CANCELLED, when a signal has come.
void EndOpeningAt(const ShutdownSignal& signal, TableSourceOptions& options);

// Whether a signal has come. If it has, says that what is under way is finished
// and that another signal ends the process at once, which it does from then on.
// REQUIRES: not asked again then.
bool EndsAtTheNext(ShutdownSignal& signal);

// As shells report what ended a process. REQUIRES: one has come.
int ExitCodeOf(const ShutdownSignal& signal);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_TABLE_SOURCE_FLAGS_H_

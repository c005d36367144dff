#include <CLI/CLI.hpp>
#include <utility>

#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "core/base/open_files.h"
#include "core/rpc/shutdown_signal.h"
#include "table_server/server_process.h"

int main(int argc, char** argv) {
  engram::ShutdownSignal signal;
  engram::InitLogging("engram-table-server");
  engram::TuneMallocForLargeMessages();
  engram::RaiseOpenFileLimit();
  CLI::App app("Serves rows of the Engram tables over gRPC.");
  engram::ServerFlags flags;
  engram::AddServerFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  return engram::RunServer(std::move(flags), signal);
}

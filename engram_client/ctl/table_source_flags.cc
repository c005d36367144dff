#include "engram_client/ctl/table_source_flags.h"

#include <unistd.h>

#include <cstdio>

#include "absl/status/status.h"

namespace engram::ctl {

CLI::Option* AddCheckpointFlags(CLI::App& command,
                                TableSourceOptions& options) {
  CLI::Option* checkpoint = command.add_option(
      "--checkpoint", options.checkpoint_dir,
      "checkpoint directory with engram_manifest.json, or its https:// or "
      "http:// URL");
  command
      .add_option("--token-file", options.http.token_file,
                  "bearer token for that URL; read again when it changes")
      ->needs(checkpoint);
  command
      .add_option("--ca-file", options.http.ca_file,
                  "CA certificates (PEM) for it instead of the system's")
      ->needs(checkpoint);
  return checkpoint;
}

void EndOpeningAt(const ShutdownSignal& signal, TableSourceOptions& options) {
  options.while_opening = [&signal] {
    return signal.WaitUntil(absl::InfinitePast())
               ? absl::CancelledError("interrupted")
               : absl::OkStatus();
  };
}

bool EndsAtTheNext(ShutdownSignal& signal) {
  if (!signal.WaitUntil(absl::InfinitePast())) return false;
  signal.EndAtTheNext();  // before it says so
  std::fprintf(stderr,
               "%sengramctl: told to end: what is under way is finished; "
               "another signal ends it at once\n",
               isatty(fileno(stderr)) ? "\n" : "");  // behind the progress
  return true;
}

int ExitCodeOf(const ShutdownSignal& signal) { return 128 + signal.number(); }

}  // namespace engram::ctl

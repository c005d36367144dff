// engramctl: the tool for people. commands.h lists what it can do.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/verify_report.h"

namespace engram::ctl {
namespace {

constexpr int kFailed = 1;

constexpr char kExamples[] =
    R"(Files are safetensors. Addresses are host:port or unix:PATH, separated by commas;
table servers may also be given as static:NAME=ADDRESS,..., file:PATH or dns:NAME.
`engramctl COMMAND --help` shows a command's options and examples.

Exit code: 0 done, 1 failed (the reason is on stderr), 2 wrong usage, 130
interrupted. `load`, `import` and `verify` have their own: see their help.)";

int Run(int argc, char** argv) {
  CLI::App app(
      "engramctl - layouts, checkpoints, gathers, steps, load and clusters of "
      "Engram by hand");
  app.name("engramctl");
  app.footer(kExamples);
  app.set_version_flag("--version", absl::StrCat("engramctl ", kBuildVersion,
                                                 " (", kBuildCommit, ")"));
  app.require_subcommand(1);

  Action action;
  AddLayout(app, action);
  AddHash(app, action);
  AddManifest(app, action);
  AddMakeCheckpoint(app, action);
  AddImport(app, action);
  AddVerify(app, action);
  AddGather(app, action);
  AddApply(app, action);
  AddStatus(app, action);
  AddPlan(app, action);
  AddDrain(app, action);
  AddHeat(app, action);
  AddLoad(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    return app.got_subcommand(kLoadCommand) ? kFailed : kWrongUsage;
  }
  // What 1 says of verify is that it found damage.
  const int failed =
      app.got_subcommand(kVerifyCommand) ? kCannotVerify : kFailed;
  absl::StatusOr<int> result;
  try {
    result = action();
  } catch (const std::bad_alloc&) {
    result = absl::ResourceExhaustedError("out of memory");
  }
  if (!result.ok()) {
    std::fprintf(stderr, "engramctl: %s\n",
                 std::string(result.status().message()).c_str());
    return failed;
  }
  // What went to a full disk or a closed pipe was not printed.
  if (std::fflush(stdout) != 0) {
    std::perror("engramctl: cannot write to stdout");
    return failed;
  }
  return *result;
}

}  // namespace
}  // namespace engram::ctl

int main(int argc, char** argv) {
  engram::InitLogging("engramctl");
  engram::TuneMallocForLargeMessages();
  // What the clients do on the way is for services' logs.
  spdlog::set_level(spdlog::level::warn);
  return engram::ctl::Run(argc, argv);
}

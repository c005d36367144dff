// engramctl layout: primes, offsets, rows and multipliers of a configuration.

#include "core/model/layout.h"

#include <cstdio>
#include <memory>
#include <string>

#include "core/base/status_macros.h"
#include "core/model/config.h"
#include "engram_client/ctl/commands.h"

namespace engram::ctl {
namespace {

struct LayoutFlags {
  std::string config;
};

absl::StatusOr<int> RunLayout(const LayoutFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config, LoadConfig(flags.config));
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(config));
  const std::string json = layout.ToJson(config);
  std::printf("%s%s", json.c_str(), json.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace

void AddLayout(CLI::App& app, Action& action) {
  auto flags = std::make_shared<LayoutFlags>();
  CLI::App* command = app.add_subcommand(
      "layout", "Print the primes, offsets, rows and multipliers as JSON");
  command->add_option("--config", flags->config, "config.json of the model")
      ->required();
  command->footer("Example:\n  engramctl layout --config DIR/config.json");
  command->callback(
      [flags, &action] { action = [flags] { return RunLayout(*flags); }; });
}

}  // namespace engram::ctl

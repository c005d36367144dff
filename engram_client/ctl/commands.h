#ifndef ENGRAM_ENGRAM_CLIENT_CTL_COMMANDS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/statusor.h"

namespace engram::ctl {

// What the chosen subcommand does once the whole command line is understood.
// The value is the exit code; an error is printed and gives exit code 1, 2 of
// verify.
using Action = std::function<absl::StatusOr<int>()>;

// Exit code of a command line that makes no sense, other than kLoadCommand's.
inline constexpr int kWrongUsage = 2;
inline constexpr int kInterruptedExitCode = 130;  // as shells report SIGINT

// Their exit codes are their own: wrong usage of load is 1, a failure of verify
// 2.
inline constexpr char kLoadCommand[] = "load";
inline constexpr char kVerifyCommand[] = "verify";

// Each adds one subcommand to `app`; when the user chose it, `action` is set.
// Both must outlive the parsing.
void AddLayout(CLI::App& app, Action& action);
void AddHash(CLI::App& app, Action& action);
void AddManifest(CLI::App& app, Action& action);
void AddMakeCheckpoint(CLI::App& app, Action& action);
void AddGather(CLI::App& app, Action& action);
void AddApply(CLI::App& app, Action& action);
void AddStatus(CLI::App& app, Action& action);
void AddPlan(CLI::App& app, Action& action);
void AddDrain(CLI::App& app, Action& action);
void AddHeat(CLI::App& app, Action& action);
void AddLoad(CLI::App& app, Action& action);
void AddImport(CLI::App& app, Action& action);
void AddVerify(CLI::App& app, Action& action);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_COMMANDS_H_

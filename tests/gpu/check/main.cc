// engram-gpu-check: proves the GPU code on the GPU of this machine, then
// measures it. See tests/gpu/README.md; tests/gpu/run builds and starts it.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/atomic_file.h"
#include "core/base/log.h"
#include "core/gpu/gpu_device.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_context.h"
#include "tests/gpu/check/machine_facts.h"
#include "tests/gpu/check/options.h"
#include "tests/gpu/check/report.h"
#include "tests/gpu/check/run_checks.h"
#include "tests/gpu/check/watchdog.h"

namespace engram::gpu_check {
namespace {

constexpr int kMinComputeMajor = 9;  // what the kernels are built for

void Say(const std::string& what) {
  std::fprintf(stderr, "engram-gpu-check: %s\n", what.c_str());
}

void List() {
  for (const Check& check : AllChecks(nullptr)) {
    std::printf("%-20s %s%s\n", check.name.c_str(), check.what.c_str(),
                check.in_quick ? "" : " (not with --quick)");
  }
}

absl::StatusOr<GpuDevice> FindDevice(int index) {
  const absl::StatusOr<std::vector<GpuDevice>> devices = ListGpuDevices();
  if (!devices.ok()) return devices.status();
  if (static_cast<size_t>(index) >= devices->size()) {
    return absl::NotFoundError(absl::StrCat("--device ", index, ": there are ",
                                            devices->size(), " devices"));
  }
  const GpuDevice& device = (*devices)[index];
  if (device.major < kMinComputeMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        device.name, " has compute capability ", device.major, ".",
        device.minor, ", the kernels need ", kMinComputeMajor, ".0"));
  }
  return device;
}

// Says so where it does not succeed: a full disk must not look like a result.
bool WriteJson(const Options& options, const Report& report) {
  if (options.json_path.empty()) return true;
  const absl::Status written =
      WriteFileAtomically(options.json_path, report.ToJson());
  if (!written.ok()) Say(written.ToString());
  return written.ok();
}

int Finish(const Options& options, const Report& report) {
  const bool written = WriteJson(options, report);
  std::printf("\n%s", report.ToTable().c_str());
  const size_t failed = report.Count(Verdict::kFailed);
  std::printf(
      "\n%zu checks ok, %zu failed, %zu skipped; %zu goals not "
      "reached\n",
      report.Count(Verdict::kOk), failed, report.Count(Verdict::kSkipped),
      report.ShortFigures());
  return failed == 0 && written ? kExitOk : kExitFailed;
}

// The names of the checks that --only chooses, in `context`.
absl::StatusOr<std::vector<Check>> ChooseChecks(const Options& options,
                                                GpuContext* context) {
  std::vector<Check> all = AllChecks(context);
  std::vector<std::string> names;
  for (const Check& check : all) names.push_back(check.name);
  const absl::StatusOr<std::vector<bool>> chosen = Choose(options.only, names);
  if (!chosen.ok()) return chosen.status();
  std::vector<Check> checks;
  for (size_t i = 0; i < all.size(); ++i) {
    if ((*chosen)[i]) checks.push_back(std::move(all[i]));
  }
  return checks;
}

int RunOn(const GpuDevice& device, const Options& options) {
  Report report;
  auto context = GpuContext::Create(options, device, report);
  if (!context.ok()) {
    Say(context.status().ToString());
    return kExitFailed;
  }
  if (options.rehearse) report.SetRehearsal();
  AddFacts(options, device, (*context)->seed(), report);
  Say(absl::StrCat(device.name, ", seed ", (*context)->seed()));
  // What hangs, hangs in the driver: nothing of this process can be unwound.
  Watchdog watchdog([&](const std::string& what, absl::Duration limit) {
    Say(absl::StrCat(what, " took more than ", absl::FormatDuration(limit)));
    report.AddCheck(
        {what, Verdict::kFailed,
         absl::StrCat("took more than ", absl::FormatDuration(limit)),
         absl::ToDoubleSeconds(limit)});
    Finish(options, report);
    std::fflush(nullptr);
    _exit(kExitTooLong);
  });
  const RunLimits limits = {options.quick && !options.rehearse,
                            absl::Seconds(options.time_limit_seconds)};
  const std::vector<Check> checks = *ChooseChecks(options, context->get());
  RunChecks(checks, limits, watchdog, report, [&](const CheckResult& result) {
    Say(absl::StrCat(result.name, ": ",
                     result.verdict == Verdict::kFailed ? "FAILED: " : "",
                     result.detail));
    WriteJson(options, report);  // what there is, should a later check end it
  });
  return Finish(options, report);
}

// Beside the program's own folder, wherever it was started from.
std::string DefaultDataDir() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / ".." / "data";
}

int Main(Options& options) {
  if (options.list) {
    List();
    return kExitOk;
  }
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir();
  if (const auto checks = ChooseChecks(options, nullptr); !checks.ok()) {
    Say(checks.status().ToString());
    return kExitUsage;
  }
  const absl::StatusOr<GpuDevice> device = FindDevice(options.device);
  if (!device.ok()) {
    Say(absl::StrCat("no device to run on: ", device.status().message()));
    return kExitNoDevice;
  }
  if (options.probe) {
    Say(device->name);
    return kExitOk;
  }
  return RunOn(*device, options);
}

}  // namespace
}  // namespace engram::gpu_check

int main(int argc, char** argv) {
  engram::InitLogging("engram-gpu-check");
  engram::gpu_check::Options options;
  CLI::App app(
      "Proves the GPU code on this machine's GPU and measures it. Ends with 0: "
      "all is right (goals may be short), 1: a check failed, 2: usage, 3: no "
      "device, 4: a check took too long.");
  engram::gpu_check::AddFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : engram::gpu_check::kExitUsage;
  }
  return engram::gpu_check::Main(options);
}

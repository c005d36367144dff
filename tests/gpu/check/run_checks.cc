#include "tests/gpu/check/run_checks.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace engram::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

absl::Duration Since(SteadyClock::time_point start) {
  return absl::FromChrono(SteadyClock::now() - start);
}

CheckResult RunOne(const Check& check, Watchdog& watchdog) {
  CheckResult result;
  result.name = check.name;
  const SteadyClock::time_point start = SteadyClock::now();
  watchdog.Arm(check.name, check.limit);
  absl::StatusOr<Outcome> outcome = check.run();
  watchdog.Disarm();
  result.seconds = absl::ToDoubleSeconds(Since(start));
  if (outcome.ok()) {
    result.verdict = outcome->verdict;
    result.detail = std::move(outcome->detail);
  } else {
    result.verdict = Verdict::kFailed;
    result.detail = outcome.status().ToString();
  }
  return result;
}

}  // namespace

void RunChecks(absl::Span<const Check> checks, const RunLimits& limits,
               Watchdog& watchdog, Report& report,
               const std::function<void(const CheckResult&)>& on_result) {
  const SteadyClock::time_point start = SteadyClock::now();
  for (const Check& check : checks) {
    CheckResult result;
    if (limits.quick && !check.in_quick) {
      result = {check.name, Verdict::kSkipped, "not part of --quick"};
    } else if (Since(start) > limits.all) {
      result = {check.name, Verdict::kSkipped,
                absl::StrCat("more than ", absl::FormatDuration(limits.all),
                             " had passed")};
    } else {
      result = RunOne(check, watchdog);
    }
    report.AddCheck(result);
    on_result(result);
  }
}

}  // namespace engram::gpu_check

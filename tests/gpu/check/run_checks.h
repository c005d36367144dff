#ifndef ENGRAM_TESTS_GPU_CHECK_RUN_CHECKS_H_
#define ENGRAM_TESTS_GPU_CHECK_RUN_CHECKS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tests/gpu/check/report.h"
#include "tests/gpu/check/watchdog.h"

namespace engram::gpu_check {

// What a check that did not fail says.
struct Outcome {
  Verdict verdict = Verdict::kOk;
  std::string detail;
};

inline Outcome Passed(std::string detail) {
  return {Verdict::kOk, std::move(detail)};
}
inline Outcome Skipped(std::string reason) {
  return {Verdict::kSkipped, std::move(reason)};
}

struct Check {
  std::string name;
  std::string what;
  absl::Duration limit;  // above it the process ends
  bool in_quick = true;  // timings are not
  std::function<absl::StatusOr<Outcome>()> run;
};

struct RunLimits {
  bool quick = false;
  absl::Duration all = absl::InfiniteDuration();  // no check starts later
};

// Runs the checks in their order, each under the watchdog, and reports every
// one: those that are not run, too, with the reason. `on_result` is called
// after each.
void RunChecks(absl::Span<const Check> checks, const RunLimits& limits,
               Watchdog& watchdog, Report& report,
               const std::function<void(const CheckResult&)>& on_result);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_RUN_CHECKS_H_

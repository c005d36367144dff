#include "tests/gpu/check/options.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/flag_checks.h"

namespace engram::gpu_check {

void AddFlags(CLI::App& app, Options& options) {
  app.add_flag("--list", options.list, "Print the checks, run none");
  app.add_flag("--probe", options.probe,
               "Say which device there is, run no check");
  app.add_flag("--quick", options.quick,
               "Small shapes and no timings: for compute-sanitizer");
  app.add_flag("--rehearse", options.rehearse,
               "Every check and timing at sizes for a CPU, to try the program "
               "itself; its figures mean nothing");
  app.add_option("--device", options.device, "Index of the GPU")
      ->check(WholeNumber(0, 1023));
  app.add_option("--only", options.only,
                 "Run only checks with this in their name; may be repeated");
  app.add_option("--data", options.data_dir,
                 "Directory of golden files and their checkpoints, default "
                 "../data beside this program's folder");
  app.add_option(
      "--v41-mini", options.v41_mini_dir,
      "Checkpoint that engram_oracle.py made of the preset v41-mini");
  app.add_option("--json", options.json_path, "Write all numbers here");
  app.add_option("--fact", options.facts,
                 "NAME=VALUE for the report; may be repeated")
      ->check(CLI::Validator(
          [](const std::string& fact) {
            return fact.find('=', 1) == std::string::npos
                       ? "no NAME=VALUE: " + fact
                       : std::string();
          },
          "NAME=VALUE"));
  app.add_option("--seed", options.seed_text,
                 "Of the random inputs; default: another one each run")
      ->check(WholeNumber(0, std::numeric_limits<uint64_t>::max()));
  app.add_option("--time-limit-seconds", options.time_limit_seconds,
                 "All checks together; those that would start later are "
                 "skipped")
      ->check(WholeNumber(1, 3600))
      ->capture_default_str();
}

uint64_t SeedOf(const Options& options) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(options.seed_text, &seed)) return seed;
  return static_cast<uint64_t>(absl::GetCurrentTimeNanos() / 1000 %
                               1'000'000'000);
}

absl::StatusOr<std::vector<bool>> Choose(absl::Span<const std::string> patterns,
                                         absl::Span<const std::string> names) {
  std::vector<bool> chosen(names.size(), patterns.empty());
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!absl::StrContains(names[i], pattern)) continue;
      chosen[i] = true;
      found = true;
    }
    if (found) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--only ", pattern,
                     ": no check has this in its name; "
                     "there are ",
                     absl::StrJoin(names, ", ")));
  }
  return chosen;
}

}  // namespace engram::gpu_check

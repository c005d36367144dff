#ifndef ENGRAM_TESTS_GPU_CHECK_OPTIONS_H_
#define ENGRAM_TESTS_GPU_CHECK_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram::gpu_check {

// Exit codes of engram-gpu-check, and of tests/gpu/run that passes them on.
inline constexpr int kExitOk = 0;      // also where goals were not reached
inline constexpr int kExitFailed = 1;  // a check failed
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoDevice = 3;  // no GPU that the kernels run on
inline constexpr int kExitTooLong = 4;   // a check passed its limit

struct Options {
  bool list = false;
  bool probe = false;
  bool quick = false;
  bool rehearse = false;
  int device = 0;
  std::vector<std::string> only;      // parts of names; empty: everything
  std::string data_dir;               // golden files and their checkpoints
  std::string v41_mini_dir;           // checkpoint of V4.1's shapes, or empty
  std::string json_path;              // empty: no JSON
  std::vector<std::string> facts;     // NAME=VALUE, for the report
  std::string seed_text;              // decimal; empty: of the clock
  uint32_t time_limit_seconds = 200;  // of all checks together
};

void AddFlags(CLI::App& app, Options& options);

// The seed that the flag says, or one that differs from run to run.
uint64_t SeedOf(const Options& options);

// Which of `names` the patterns of --only choose. INVALID_ARGUMENT: a pattern
// that chooses none, with the names.
absl::StatusOr<std::vector<bool>> Choose(absl::Span<const std::string> patterns,
                                         absl::Span<const std::string> names);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_OPTIONS_H_

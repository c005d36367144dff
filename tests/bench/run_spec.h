#ifndef ENGRAM_TESTS_BENCH_RUN_SPEC_H_
#define ENGRAM_TESTS_BENCH_RUN_SPEC_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/bench/contestant.h"

namespace engram::bench {

// One setting at which contestants are compared.
struct Cell {
  std::string ids;  // distribution
  size_t rows = 0;  // a call
  size_t in_flight = 0;
};

struct ContestantSpec {
  std::string name;
  ContestantOptions options;
  std::vector<pid_t> processes;  // its servers
  // Cells that it takes part in; empty: any.
  std::vector<std::string> only_ids;
  std::vector<size_t> only_rows;
  std::vector<size_t> only_in_flight;

  bool TakesPartIn(const Cell& cell) const;
};

// What one run of the driver does, as the script that started the servers
// wrote it down.
struct RunSpec {
  std::string checkpoint_dir;
  size_t rounds = 0;
  absl::Duration duration;  // of one contestant in one cell and round
  std::vector<Cell> cells;
  std::vector<ContestantSpec> contestants;
};

// INVALID_ARGUMENT names the key.
absl::StatusOr<RunSpec> ParseRunSpec(absl::string_view json);

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_RUN_SPEC_H_

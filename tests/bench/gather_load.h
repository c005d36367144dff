#ifndef ENGRAM_TESTS_BENCH_GATHER_LOAD_H_
#define ENGRAM_TESTS_BENCH_GATHER_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/row_reader.h"
#include "tests/bench/synthetic_table.h"

namespace engram::bench {

// What is asked of a RowReader for a while.
struct GatherLoad {
  size_t rows = 0;         // of a gather
  size_t in_flight = 1;    // gathers at once, a thread each
  double zipf = 0;         // exponent of the ids' popularity; 0: uniform
  uint64_t seed = 0;       // the same seed, the same ids
  double seconds = 0;      // as long as this,
  uint64_t gathers = 0;    // or, if it is not 0, so many in all
  size_t check_every = 1;  // of a gather's rows
};

struct GatherTurn {
  double seconds = 0;
  double rows_per_s = 0;
  double core_us_per_row = 0;  // of the whole process
  std::vector<double> latencies_us;
};

// An error of the reader, or DATA_LOSS: a row is not what it should be.
absl::StatusOr<GatherTurn> RunGathers(RowReader& reader,
                                      const SyntheticTable& table,
                                      const GatherLoad& load);

// Of values in any order; 0 of none.
double Quantile(std::vector<double> values, double q);

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_GATHER_LOAD_H_

#ifndef ENGRAM_TESTS_BENCH_MEASURE_H_
#define ENGRAM_TESTS_BENCH_MEASURE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tests/bench/batches.h"
#include "tests/bench/contestant.h"
#include "tests/bench/row_table.h"

namespace engram::bench {

// CPU time, user and system, that processes have used so far.
class CpuMeter {
 public:
  // NOT_FOUND: no such process.
  static absl::StatusOr<CpuMeter> Create(absl::Span<const pid_t> processes);
  // Of this process.
  static double OwnSeconds();
  double Seconds() const;

 private:
  std::vector<clockid_t> clocks_;
};

// One contestant at one setting in one round.
struct RoundResult {
  uint64_t gathers = 0;
  uint64_t rows = 0;
  double seconds = 0;
  double client_core_seconds = 0;
  double server_core_seconds = 0;   // of all its processes
  std::vector<float> latencies_us;  // of each gather, ascending
};

struct LoadOptions {
  size_t in_flight = 1;
  absl::Duration duration;    // gathers are started for so long
  size_t first_batch = 0;     // of the pool
  absl::Span<std::byte> out;  // room for in_flight batches, slot after slot
};

// Keeps `in_flight` gathers going and waits for all of them. The contestant's
// first error ends it.
absl::StatusOr<RoundResult> RunLoad(GatherContestant& contestant,
                                    const BatchPool& pool,
                                    const CpuMeter& servers,
                                    const LoadOptions& options);

// Gathers `gathers` batches into poisoned memory, `in_flight` at a time, and
// compares every byte with `table`. Returns the rows compared.
absl::StatusOr<uint64_t> VerifyRows(GatherContestant& contestant,
                                    const RowTable& table,
                                    const BatchPool& pool, uint64_t gathers,
                                    const LoadOptions& options);

// Value below which `quantile` of `sorted` are. 0 where it is empty.
double Quantile(absl::Span<const float> sorted, double quantile);

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_MEASURE_H_

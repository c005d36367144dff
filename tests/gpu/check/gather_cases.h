#ifndef ENGRAM_TESTS_GPU_CHECK_GATHER_CASES_H_
#define ENGRAM_TESTS_GPU_CHECK_GATHER_CASES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace engram::gpu_check {

// A table, a gather from it, and what must come out.
struct GatherCase {
  std::string name;
  uint32_t row_bytes = 0;
  uint32_t partition_rows_log2 = 0;
  uint64_t row_count = 0;
  std::vector<bool> present;  // by partition
  std::vector<uint32_t> row_ids;

  size_t partition_count() const { return present.size(); }
  // From one partition to the next in TableBytes: aligned as a table must be
  // and no better.
  size_t partition_stride() const;
};

// Row sizes of every word width, gathers of all sizes around a warp's share,
// rows that are out of range or not here.
std::vector<GatherCase> GatherCases(bool quick, uint64_t seed);

// All partitions, with random bytes between them too.
std::vector<std::byte> TableBytes(const GatherCase& gather, uint64_t seed);

struct GatherResult {
  std::vector<std::byte> out;  // and kGatherGuard bytes after it
  uint32_t first_bad = 0xFFFFFFFF;
};
inline constexpr size_t kGatherGuard = 512;

// On the host; slots of bad rows and the guard hold `poison`.
GatherResult WantedGather(const GatherCase& gather,
                          const std::vector<std::byte>& table,
                          std::byte poison);

// DATA_LOSS naming the first slot and byte that is off.
absl::Status CompareGather(const GatherCase& gather, const GatherResult& got,
                           const GatherResult& wanted);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_GATHER_CASES_H_

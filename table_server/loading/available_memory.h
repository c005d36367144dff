#ifndef ENGRAM_TABLE_SERVER_LOADING_AVAILABLE_MEMORY_H_
#define ENGRAM_TABLE_SERVER_LOADING_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// How much memory this process may still take, and who says so.
struct AvailableMemory {
  uint64_t bytes = 0;
  std::string limited_by;  // "MemAvailable of the machine", "cgroup ..."
};

// The least of what the machine has (MemAvailable) and what the process's
// control group and the groups above it leave (version 2 or 1; page cache
// counts as free, the kernel takes it back). `root` is "" or, in tests, a
// directory with files laid out like /proc and /sys. NOT_FOUND: no meminfo.
absl::StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root);

struct LayerMemory {
  LayerId layer;
  uint64_t bytes = 0;
  uint64_t partitions = 0;
};

// What a server keeps beside rows, calls and the program: "the row cache".
struct OtherMemory {
  std::string what;
  uint64_t bytes = 0;
};

// What rows may take of `available`: all but what calls may hold, `others` and
// a reserve for everything else.
uint64_t MemoryForRows(uint64_t bytes_in_flight,
                       absl::Span<const OtherMemory> others,
                       const AvailableMemory& available);

// RESOURCE_EXHAUSTED with the sums, layer by layer, when `layers`, what calls
// may hold, `others` and a reserve for everything else do not fit into
// `available`.
absl::Status CheckMemory(absl::Span<const LayerMemory> layers,
                         uint64_t bytes_in_flight,
                         const AvailableMemory& available,
                         absl::Span<const OtherMemory> others = {});

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_AVAILABLE_MEMORY_H_

#ifndef ENGRAM_CORE_GPU_GATHER_ROWS_ARGS_H_
#define ENGRAM_CORE_GPU_GATHER_ROWS_ARGS_H_

#include <cstddef>
#include <cstdint>

namespace engram {

// A layer's packed rows, cut into partitions of 2^partition_rows_log2 rows.
// Partitions lie in the memory of the device or in pinned memory of the host,
// in any mixture, each aligned to kGatherAlignment.
struct GpuRowTable {
  // [partition_count] in memory of the device; null: that partition is not
  // here.
  const std::byte* const* partitions = nullptr;
  uint32_t partition_count = 0;
  uint32_t partition_rows_log2 = 0;
  uint64_t row_count = 0;  // of all partitions
  uint32_t row_bytes = 0;
};

inline constexpr uint32_t kGatherAlignment = 16;
// Of a packed row: what core/model/row_format.h allows.
inline constexpr uint32_t kMaxGatherRowBytes = uint32_t{1} << 20;

// One gather; all pointers are the device's.
struct GatherRowsArgs {
  GpuRowTable table;
  const uint32_t* row_ids = nullptr;  // [count]
  uint64_t count = 0;
  std::byte* out = nullptr;  // [count, row_bytes]
  // One word, 0xFFFFFFFF before: gets the lowest index into row_ids of a row
  // that is out of range or not here. Its slot of `out` is left as it was.
  uint32_t* first_bad = nullptr;
};

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GATHER_ROWS_ARGS_H_

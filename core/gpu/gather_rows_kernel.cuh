#ifndef ENGRAM_CORE_GPU_GATHER_ROWS_KERNEL_CUH_
#define ENGRAM_CORE_GPU_GATHER_ROWS_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/gpu/gather_rows_args.h"
#include "core/gpu/gather_rows_shape.h"
#include "core/gpu/ptx.cuh"

// Copies rows that lie anywhere to one after the other; gather_rows_shape.h
// says how they are dealt out.

namespace engram::gpu {

// How a warp reads rows whose words are these.
template <typename Word>
struct GatherWarp {
  static constexpr uint32_t kLanes = GatherGroupLanes(sizeof(Word));
  static constexpr uint32_t kGroups = 32 / kLanes;
  static constexpr uint32_t kSegmentBytes = kLanes * sizeof(Word);
  // A lane has kRows * kSegments loads under way before it stores the first.
  // Rows of 264 bytes touch three segments.
  static constexpr uint32_t kRows = sizeof(Word) == 16 ? 2 : 4;
  static constexpr uint32_t kSegments = 3;
  static_assert(32 % (kGroups * kRows) == 0);  // no row above the last lane's
};

// Where row `i` lies; null after reporting that it is nowhere.
__device__ __forceinline__ const std::byte* FindRow(const GatherRowsArgs& args,
                                                    uint64_t i) {
  const GpuRowTable& table = args.table;
  const uint32_t id = LoadStreaming(args.row_ids + i);
  const std::byte* partition = nullptr;
  if (id < table.row_count) {
    partition = table.partitions[id >> table.partition_rows_log2];
  }
  if (partition == nullptr) {
    AtomicMin(args.first_bad, static_cast<uint32_t>(i));
    return nullptr;
  }
  const uint32_t in_partition =
      id & ((uint32_t{1} << table.partition_rows_log2) - 1);
  return partition + uint64_t{in_partition} * table.row_bytes;
}

// A lane's words of one row, one in each segment.
struct LaneOfRow {
  uintptr_t from;  // of the word in the first segment
  uintptr_t to;
  // Where that word lies in the row. Segments begin before the row and go on
  // after it: as an unsigned number, the place is then none in the row.
  uint32_t place;
};

template <typename Word>
__device__ __forceinline__ LaneOfRow FindLane(uintptr_t row,
                                              const std::byte* out,
                                              uint32_t lane) {
  using Warp = GatherWarp<Word>;
  constexpr uint32_t kNoPlace = 0x80000000;
  const auto start = static_cast<uint32_t>(row) % Warp::kSegmentBytes;
  const uint32_t in_segment = lane % Warp::kLanes * sizeof(Word);
  return {row - start + in_segment,
          reinterpret_cast<uintptr_t>(out) - start + in_segment,
          row == 0 ? kNoPlace : in_segment - start};
}

// Copies the next kSegments segments of the rows and goes on behind them.
template <typename Word>
__device__ __forceinline__ void CopySegments(
    LaneOfRow (&rows)[GatherWarp<Word>::kRows], uint32_t row_bytes) {
  using Warp = GatherWarp<Word>;
  Word words[Warp::kRows][Warp::kSegments];
#pragma unroll
  for (uint32_t r = 0; r < Warp::kRows; ++r) {
#pragma unroll
    for (uint32_t s = 0; s < Warp::kSegments; ++s) {
      const uint32_t skipped = s * Warp::kSegmentBytes;
      if (rows[r].place + skipped < row_bytes) {
        words[r][s] = LoadStreaming(
            reinterpret_cast<const Word*>(rows[r].from + skipped));
      }
    }
  }
#pragma unroll
  for (uint32_t r = 0; r < Warp::kRows; ++r) {
#pragma unroll
    for (uint32_t s = 0; s < Warp::kSegments; ++s) {
      const uint32_t skipped = s * Warp::kSegmentBytes;
      if (rows[r].place + skipped < row_bytes) {
        StoreStreaming(reinterpret_cast<Word*>(rows[r].to + skipped),
                       words[r][s]);
      }
    }
    rows[r].from += Warp::kSegments * Warp::kSegmentBytes;
    rows[r].to += Warp::kSegments * Warp::kSegmentBytes;
    rows[r].place += Warp::kSegments * Warp::kSegmentBytes;
  }
}

template <typename Word>
__global__ void __launch_bounds__(kGatherThreads)
    GatherRowsKernel(GatherRowsArgs args, uint32_t rows_per_warp,
                     uint32_t segments) {
  using Warp = GatherWarp<Word>;
  const uint32_t lane = threadIdx.x % 32;
  const uint64_t warp =
      uint64_t{blockIdx.x} * (kGatherThreads / 32) + threadIdx.x / 32;
  const uint64_t first = warp * rows_per_warp;
  if (first >= args.count) return;
  const uint64_t left = args.count - first;
  const uint32_t count =
      left < rows_per_warp ? static_cast<uint32_t>(left) : rows_per_warp;
  const uint32_t row_bytes = args.table.row_bytes;
  const auto own_row = reinterpret_cast<uintptr_t>(
      lane < count ? FindRow(args, first + lane) : nullptr);
  std::byte* const out = args.out + first * row_bytes;

  for (uint32_t done = 0; done < count; done += Warp::kGroups * Warp::kRows) {
    LaneOfRow rows[Warp::kRows];
#pragma unroll
    for (uint32_t r = 0; r < Warp::kRows; ++r) {
      const uint32_t i = done + r * Warp::kGroups + lane / Warp::kLanes;
      rows[r] = FindLane<Word>(Shuffle(own_row, i), out + i * row_bytes, lane);
    }
    for (uint32_t segment = 0; segment < segments; segment += Warp::kSegments) {
      CopySegments<Word>(rows, row_bytes);
    }
  }
}

}  // namespace engram::gpu

#endif  // ENGRAM_CORE_GPU_GATHER_ROWS_KERNEL_CUH_

#include "core/gpu/gather_rows_shape.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/base/check.h"
#include "core/gpu/gather_rows_args.h"

namespace engram {
namespace {

// About what the largest devices run at a time. With fewer rows than fill
// them, a warp takes fewer, down to one a group.
constexpr uint64_t kWantedWarps = 4096;
constexpr uint32_t kMaxRowsPerWarp = 32;
constexpr uint32_t kWarps = kGatherThreads / 32;

// The widest word that rows and their addresses are multiples of.
uint32_t WordBytes(uint32_t row_bytes) {
  return std::min(uint32_t{1} << std::countr_zero(row_bytes), kGatherAlignment);
}

}  // namespace

GatherRowsShape MakeGatherRowsShape(uint64_t count, uint32_t row_bytes) {
  ENGRAM_CHECK(count > 0 && count < uint64_t{1} << 32);
  ENGRAM_CHECK(row_bytes > 0 && row_bytes <= kMaxGatherRowBytes);
  GatherRowsShape shape;
  shape.word_bytes = WordBytes(row_bytes);
  const uint32_t lanes = GatherGroupLanes(shape.word_bytes);
  const uint32_t groups = 32 / lanes;
  const uint64_t fair_share = std::bit_floor(count / kWantedWarps);
  shape.rows_per_warp = static_cast<uint32_t>(
      std::clamp<uint64_t>(fair_share, groups, kMaxRowsPerWarp));
  // A row that starts with the last word of a segment touches the most.
  const uint32_t segment_bytes = lanes * shape.word_bytes;
  const uint32_t latest_start = segment_bytes - shape.word_bytes;
  shape.segments_per_row =
      (latest_start + row_bytes + segment_bytes - 1) / segment_bytes;
  const uint64_t rows_per_block = uint64_t{kWarps} * shape.rows_per_warp;
  shape.launch.grid_x =
      static_cast<uint32_t>((count + rows_per_block - 1) / rows_per_block);
  shape.launch.block_x = kGatherThreads;
  return shape;
}

}  // namespace engram

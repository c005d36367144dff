#include "core/gpu/gather_rows_shape.h"

#include <algorithm>
#include <cstdint>

#include "core/gpu/gather_rows_args.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

constexpr uint64_t kMostRows = (uint64_t{1} << 32) - 1;

TEST(GatherRowsShapeTest, WordsAreTheWidestThatDivideTheRow) {
  EXPECT_EQ(MakeGatherRowsShape(1, 264).word_bytes, 8U);
  EXPECT_EQ(MakeGatherRowsShape(1, 528).word_bytes, 16U);
  EXPECT_EQ(MakeGatherRowsShape(1, 132).word_bytes, 4U);
  EXPECT_EQ(MakeGatherRowsShape(1, 66).word_bytes, 2U);
  EXPECT_EQ(MakeGatherRowsShape(1, 33).word_bytes, 1U);
  EXPECT_EQ(MakeGatherRowsShape(1, kMaxGatherRowBytes).word_bytes, 16U);
}

// Every place a row can start at, as the kernel reads it.
TEST(GatherRowsShapeTest, SegmentsAreTheMostThatARowTouches) {
  for (const uint32_t row_bytes :
       {1U, 2U, 8U, 16U, 33U, 66U, 128U, 132U, 136U, 144U, 264U, 528U, 4096U,
        4097U, kMaxGatherRowBytes}) {
    const GatherRowsShape shape = MakeGatherRowsShape(1000, row_bytes);
    const uint32_t segment_bytes =
        GatherGroupLanes(shape.word_bytes) * shape.word_bytes;
    uint32_t most = 0;
    for (uint32_t at = 0; at < segment_bytes; at += shape.word_bytes) {
      const uint32_t last = at + row_bytes - 1;
      most = std::max(most, last / segment_bytes + 1);
    }
    EXPECT_EQ(shape.segments_per_row, most) << row_bytes;
  }
  EXPECT_EQ(MakeGatherRowsShape(1, 264).segments_per_row, 3U);
}

TEST(GatherRowsShapeTest, AllRowsAreDealtOut) {
  for (const uint32_t row_bytes : {264U, 528U, 132U, 66U, 33U}) {
    for (const uint64_t count :
         {uint64_t{1}, uint64_t{31}, uint64_t{48}, uint64_t{1536},
          uint64_t{65536}, uint64_t{65537}, uint64_t{6144000}, kMostRows}) {
      const GatherRowsShape shape = MakeGatherRowsShape(count, row_bytes);
      const uint32_t groups = 32 / GatherGroupLanes(shape.word_bytes);
      EXPECT_EQ(shape.launch.block_x, kGatherThreads);
      EXPECT_LE(shape.rows_per_warp, 32U);
      EXPECT_EQ(shape.rows_per_warp % groups, 0U);
      const uint64_t block_rows =
          uint64_t{kGatherThreads / 32} * shape.rows_per_warp;
      EXPECT_GE(shape.launch.grid_x * block_rows, count);
      EXPECT_LT((shape.launch.grid_x - 1) * block_rows, count);
      EXPECT_LT(shape.launch.grid_x, uint32_t{1} << 31);
      EXPECT_EQ(shape.launch.grid_y, 1U);
      EXPECT_EQ(shape.launch.grid_z, 1U);
      EXPECT_EQ(shape.launch.shared_bytes, 0U);
    }
  }
}

TEST(GatherRowsShapeTest, FewRowsUseManyWarps) {
  EXPECT_EQ(MakeGatherRowsShape(48, 264).rows_per_warp, 2U);
  EXPECT_EQ(MakeGatherRowsShape(65536, 264).rows_per_warp, 16U);
  EXPECT_EQ(MakeGatherRowsShape(1 << 20, 264).rows_per_warp, 32U);
}

TEST(GatherRowsShapeDeathTest, RefusesWhatNoGatherHas) {
  EXPECT_DEATH(MakeGatherRowsShape(0, 264), "count");
  EXPECT_DEATH(MakeGatherRowsShape(kMostRows + 1, 264), "count");
  EXPECT_DEATH(MakeGatherRowsShape(1, 0), "row_bytes");
  EXPECT_DEATH(MakeGatherRowsShape(1, kMaxGatherRowBytes + 1), "row_bytes");
}

}  // namespace
}  // namespace engram

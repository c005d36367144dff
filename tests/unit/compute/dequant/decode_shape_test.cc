#include "compute/dequant/decode_shape.h"

#include <cstdint>

#include "compute/dequant/decode_args.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

DecodeArgs Args(uint32_t tokens, uint32_t columns, uint32_t width,
                uint32_t block_size, DecodedLayout layout) {
  DecodeArgs args;
  args.token_count = tokens;
  args.columns = columns;
  args.width = width;
  args.block_size = block_size;
  args.layout = layout;
  return args;
}

DecodeKind KindOf(uint32_t width, uint32_t block_size, uintptr_t rows = 0,
                  uintptr_t out = 0) {
  DecodeArgs args = Args(3, 32, width, block_size, DecodedLayout::kRowMajor);
  args.rows = reinterpret_cast<const std::byte*>(rows);
  args.out = reinterpret_cast<uint16_t*>(out);
  return MakeDecodeShape(args).kind;
}

TEST(DecodeShapeTest, WideNeedsAlignedRowsAndWholeScaleBlocks) {
  EXPECT_EQ(KindOf(256, 32), DecodeKind::kWide);
  EXPECT_EQ(KindOf(512, 64), DecodeKind::kWide);
  EXPECT_EQ(KindOf(2048, 256), DecodeKind::kWide);
  EXPECT_EQ(KindOf(256, 16), DecodeKind::kAny);
  EXPECT_EQ(KindOf(256, 64), DecodeKind::kAny);   // rows of 260 bytes
  EXPECT_EQ(KindOf(1536, 96), DecodeKind::kAny);  // not a power of two
  EXPECT_EQ(KindOf(64, 32), DecodeKind::kAny);    // rows of 66 bytes
  EXPECT_EQ(KindOf(256, 32, 8, 16), DecodeKind::kWide);
  EXPECT_EQ(KindOf(256, 32, 4, 16), DecodeKind::kAny);
  EXPECT_EQ(KindOf(256, 32, 8, 8), DecodeKind::kAny);
}

TEST(DecodeShapeTest, BlocksCoverAllValuesAndNoMoreThanTheyMust) {
  for (const auto layout :
       {DecodedLayout::kRowMajor, DecodedLayout::kFragments}) {
    for (const uint32_t tokens : {1U, 7U, 8U, 9U, 4096U}) {
      // V4.1: 24 warps for each 8 tokens.
      const LaunchShape wide =
          MakeDecodeShape(Args(tokens, 24, 256, 32, layout)).launch;
      EXPECT_EQ(wide.grid_x * kDecodeWarps, (tokens + 7) / 8 * 24);
      EXPECT_EQ(wide.block_x, kDecodeThreads);
      // 3 warps for each of 5 rows.
      EXPECT_EQ(MakeDecodeShape(Args(tokens, 5, 768, 32, layout)).launch.grid_x,
                (tokens + 7) / 8 * 4);
      // 96 values a token.
      EXPECT_EQ(
          MakeDecodeShape(Args(tokens, 2, 48, 16, layout)).launch.grid_x,
          layout == DecodedLayout::kFragments ? (tokens + 7) / 8 * 8 : tokens);
    }
  }
}

TEST(DecodeShapeTest, BlocksAreCountedWithoutOverflow) {
  for (const auto layout :
       {DecodedLayout::kRowMajor, DecodedLayout::kFragments}) {
    EXPECT_EQ(DecodeBlockCount(Args(0, 24, 256, 32, layout)), 0U);
    EXPECT_EQ(DecodeBlockCount(
                  Args(0xFFFFFFFF, kMaxDecodeValues / 256, 256, 32, layout)),
              (uint64_t{1} << 29) * (kMaxDecodeValues / 256 / kDecodeWarps));
    EXPECT_GE(DecodeBlockCount(
                  Args(0xFFFFFFFF, kMaxDecodeValues / 16, 16, 16, layout)),
              uint64_t{0xFFFFFFFF} * (kMaxDecodeValues / kDecodeThreads));
  }
}

}  // namespace
}  // namespace engram

#include "compute/project/project_shape.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace engram {
namespace {

ProjectArgs Sizes(uint32_t in, uint32_t out, uint32_t token_count) {
  ProjectArgs args;
  args.in = in;
  args.out = out;
  args.token_count = token_count;
  return args;
}

TEST(ProjectShapeTest, TheSmallestTileThatHoldsTheTokens) {
  EXPECT_EQ(ProjectTileSizeFor(1), ProjectTileSize::k8Tokens);
  EXPECT_EQ(ProjectTileSizeFor(8), ProjectTileSize::k8Tokens);
  EXPECT_EQ(ProjectTileSizeFor(9), ProjectTileSize::k16Tokens);
  EXPECT_EQ(ProjectTileSizeFor(17), ProjectTileSize::k32Tokens);
  EXPECT_EQ(ProjectTileSizeFor(64), ProjectTileSize::k64Tokens);
  EXPECT_EQ(ProjectTileSizeFor(65), ProjectTileSize::k128Tokens);
  EXPECT_EQ(ProjectTileSizeFor(100000), ProjectTileSize::k128Tokens);
}

// Features and tokens of a block of each tile.
template <class Tile>
void ExpectCovers(ProjectTileSize size) {
  constexpr uint32_t kFeatures = Tile::kWarps * Tile::kFeatureTiles * 16;
  constexpr uint32_t kTokens = Tile::kTokenTiles * 8;
  for (const uint32_t out :
       {1U, kFeatures, kFeatures + 1, 25600U, (1U << 30) / kFeatures}) {
    for (const uint32_t tokens : {1U, kTokens, kTokens + 1, 4096U}) {
      const ProjectArgs args = Sizes(32, out, tokens);
      if (!ProjectFits(args)) continue;
      const LaunchShape shape = ProjectLaunchShape(size, args);
      const uint64_t feature_blocks = (out + kFeatures - 1) / kFeatures;
      const uint64_t token_blocks = (tokens + kTokens - 1) / kTokens;
      EXPECT_EQ(shape.grid_x, feature_blocks * token_blocks);
      EXPECT_LT(shape.grid_x, 1U << 31);
      EXPECT_EQ(shape.grid_y, 1U);
      EXPECT_EQ(shape.block_x, Tile::kWarps * 32);
      EXPECT_EQ(shape.shared_bytes, Tile::kSharedBytes);
      // 228 KiB an SM, of which each block takes 1 KiB beside its own.
      EXPECT_LE((shape.shared_bytes + 1024) * Tile::kBlocksOfAnSm, 228U * 1024);
    }
  }
}

TEST(ProjectShapeTest, GridsCoverAllFeaturesAndTokens) {
  ExpectCovers<TileOf8Tokens>(ProjectTileSize::k8Tokens);
  ExpectCovers<TileOf16Tokens>(ProjectTileSize::k16Tokens);
  ExpectCovers<TileOf32Tokens>(ProjectTileSize::k32Tokens);
  ExpectCovers<TileOf64Tokens>(ProjectTileSize::k64Tokens);
  ExpectCovers<TileOf128Tokens>(ProjectTileSize::k128Tokens);
}

TEST(ProjectShapeTest, RefusesWhatTheKernelsCannotCount) {
  EXPECT_TRUE(ProjectFits(Sizes(6144, 25600, 1 << 20)));
  EXPECT_TRUE(ProjectFits(Sizes(32, 1, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(0, 1, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(33, 1, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(32, 0, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(32, 1, 0)));
  EXPECT_FALSE(ProjectFits(Sizes(32, 1U << 31, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(32, 1, 1U << 31)));
  // 2^32 loads of codes, of tokens; 2^31 blocks.
  EXPECT_FALSE(ProjectFits(Sizes(1 << 16, 1 << 20, 1)));
  EXPECT_FALSE(ProjectFits(Sizes(1 << 15, 1, 1 << 20)));
  EXPECT_FALSE(ProjectFits(Sizes(32, 1 << 20, 1 << 18)));
}

}  // namespace
}  // namespace engram

#ifndef ENGRAM_COMPUTE_PROJECT_PROJECT_SHAPE_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECT_SHAPE_H_

#include <cstdint>

#include "compute/project/fragment_layout.h"
#include "compute/project/project_args.h"
#include "core/gpu/gpu_types.h"

// What the GPU's projection runs with: the tiles there are, which of them for
// how many tokens, and how they are launched.

namespace engram {

// Blocks of K that are copied to shared memory at a time.
inline constexpr uint32_t kStageBlocks = kBlockGroup;

// A block of threads is kWarps warps, each with kFeatureTiles * 16 features;
// all have the same kTokenTiles * 8 tokens.
template <uint32_t kFeatureTilesOfAWarp, uint32_t kTokenTilesOfAWarp,
          uint32_t kWarpsOfABlock, uint32_t kStagesUnderWay>
struct TileShape {
  static constexpr uint32_t kFeatureTiles = kFeatureTilesOfAWarp;
  static constexpr uint32_t kTokenTiles = kTokenTilesOfAWarp;
  static constexpr uint32_t kWarps = kWarpsOfABlock;
  static constexpr uint32_t kStages = kStagesUnderWay;

  // Of each warp's stage: codes, and 16 bytes of scales for every lane.
  static constexpr uint32_t kWeightStageBytes =
      kStageBlocks * kFeatureTiles * kTileCodes + 32 * 16;
  // A lone warp reads tokens through L1.
  static constexpr uint32_t kTokenStageBytes =
      kWarps == 1 ? 0 : kStageBlocks * kTokenTiles * kFragmentValues * 2;
  static constexpr uint32_t kSharedBytes =
      kStages * (kWarps * kWeightStageBytes + kTokenStageBytes);

  // Blocks of K that the compiler may interleave: as many as registers allow.
  static constexpr uint32_t kUnroll =
      kTokenTiles <= 2 ? 4 : (kTokenTiles <= 4 ? 2 : 1);
  // Lone warps need so many on an SM for enough bytes under way from memory;
  // V4.1 has 12.1 (of 16 features each) for each SM of 132.
  static constexpr uint32_t kBlocksOfAnSm =
      kWarps == 1 ? 16 / kFeatureTiles : 1;
};

using TileOf8Tokens = TileShape<1, 1, 1, 4>;
using TileOf16Tokens = TileShape<1, 2, 1, 4>;
using TileOf32Tokens = TileShape<1, 4, 1, 4>;
using TileOf64Tokens = TileShape<2, 8, 1, 4>;
using TileOf128Tokens = TileShape<2, 16, 8, 3>;

enum class ProjectTileSize : uint8_t {
  k8Tokens,
  k16Tokens,
  k32Tokens,
  k64Tokens,
  k128Tokens,
};
inline constexpr ProjectTileSize kProjectTileSizes[] = {
    ProjectTileSize::k8Tokens, ProjectTileSize::k16Tokens,
    ProjectTileSize::k32Tokens, ProjectTileSize::k64Tokens,
    ProjectTileSize::k128Tokens};

ENGRAM_HOST_DEVICE constexpr uint32_t DivideUp(uint32_t value,
                                               uint32_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

// The fastest tile for so many tokens. Every tile gives the same bits.
ProjectTileSize ProjectTileSizeFor(uint32_t token_count);

// REQUIRES: ProjectFits(args).
LaunchShape ProjectLaunchShape(ProjectTileSize size, const ProjectArgs& args);

// Whether sizes are positive and within what the kernels can count.
bool ProjectFits(const ProjectArgs& args);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECT_SHAPE_H_

#include "compute/project/project_shape.h"

#include <cstdint>
#include <limits>

#include "compute/project/fragment_layout.h"

namespace engram {
namespace {

template <class Tile>
LaunchShape ShapeOf(const ProjectArgs& args) {
  LaunchShape shape;
  shape.grid_x =
      DivideUp(args.out, Tile::kWarps * Tile::kFeatureTiles * kTileFeatures) *
      DivideUp(args.token_count, Tile::kTokenTiles * kFragmentTokens);
  shape.block_x = Tile::kWarps * 32;
  shape.shared_bytes = Tile::kSharedBytes;
  return shape;
}

}  // namespace

ProjectTileSize ProjectTileSizeFor(uint32_t token_count) {
  if (token_count <= 8) return ProjectTileSize::k8Tokens;
  if (token_count <= 16) return ProjectTileSize::k16Tokens;
  if (token_count <= 32) return ProjectTileSize::k32Tokens;
  if (token_count <= 64) return ProjectTileSize::k64Tokens;
  return ProjectTileSize::k128Tokens;
}

LaunchShape ProjectLaunchShape(ProjectTileSize size, const ProjectArgs& args) {
  switch (size) {
    case ProjectTileSize::k8Tokens:
      return ShapeOf<TileOf8Tokens>(args);
    case ProjectTileSize::k16Tokens:
      return ShapeOf<TileOf16Tokens>(args);
    case ProjectTileSize::k32Tokens:
      return ShapeOf<TileOf32Tokens>(args);
    case ProjectTileSize::k64Tokens:
      return ShapeOf<TileOf64Tokens>(args);
    case ProjectTileSize::k128Tokens:
      return ShapeOf<TileOf128Tokens>(args);
  }
  return {};
}

bool ProjectFits(const ProjectArgs& args) {
  // Kernels count loads of 16 bytes in 32 bits, and so features and tokens;
  // a grid has fewer than 2^31 blocks, of at least 16 features by 8 tokens.
  constexpr uint64_t kMaxLoads = std::numeric_limits<uint32_t>::max();
  constexpr uint32_t kMaxCount = uint32_t{1} << 30;
  constexpr uint64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  if (args.in == 0 || args.in % kFragmentK != 0 || args.out == 0 ||
      args.token_count == 0 || args.in > kMaxCount || args.out > kMaxCount ||
      args.token_count > kMaxCount) {
    return false;
  }
  const uint64_t feature_tiles = DivideUp(args.out, kTileFeatures);
  const uint64_t token_tiles = DivideUp(args.token_count, kFragmentTokens);
  return feature_tiles * token_tiles <= kMaxBlocks &&
         PackedCodeCount(args.out, args.in) / 16 <= kMaxLoads &&
         FragmentCount(args.token_count, args.in) / 8 <= kMaxLoads;
}

}  // namespace engram

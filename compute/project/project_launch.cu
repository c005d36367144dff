#include <cuda_runtime.h>

#include <cstdint>

#include "compute/project/project_kernel.cuh"
#include "compute/project/project_launch.h"

namespace engram {
namespace {

// What a block may have without being asked for.
constexpr uint32_t kDefaultSharedBytes = 48 * 1024;
// Of an SM's memory that L1 and shared memory divide, for tiles that read
// tokens through L1: 164 of Hopper's 228 KB, enough for the 13 blocks that an
// SM has in V4.1. The rest is L1, which blocks that do not come would not use.
constexpr int kSharedPercent = 72;

template <class Tile>
int LaunchTile(ProjectTileSize size, const ProjectArgs& args,
               GpuStreamHandle stream) {
  if constexpr (Tile::kSharedBytes > kDefaultSharedBytes) {
    // Per device, and cheap: it is not worth remembering.
    const cudaError_t error = cudaFuncSetAttribute(
        ProjectTile<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
        static_cast<int>(Tile::kSharedBytes));
    if (error != cudaSuccess) return error;
  }
  if constexpr (Tile::kWarps == 1) {
    const cudaError_t error = cudaFuncSetAttribute(
        ProjectTile<Tile>, cudaFuncAttributePreferredSharedMemoryCarveout,
        kSharedPercent);
    if (error != cudaSuccess) return error;
  }
  const LaunchShape shape = ProjectLaunchShape(size, args);
  ProjectTile<Tile>
      <<<shape.grid_x, shape.block_x, shape.shared_bytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace

int LaunchProject(ProjectTileSize size, const ProjectArgs& args,
                  GpuStreamHandle stream) {
  switch (size) {
    case ProjectTileSize::k8Tokens:
      return LaunchTile<TileOf8Tokens>(size, args, stream);
    case ProjectTileSize::k16Tokens:
      return LaunchTile<TileOf16Tokens>(size, args, stream);
    case ProjectTileSize::k32Tokens:
      return LaunchTile<TileOf32Tokens>(size, args, stream);
    case ProjectTileSize::k64Tokens:
      return LaunchTile<TileOf64Tokens>(size, args, stream);
    case ProjectTileSize::k128Tokens:
      return LaunchTile<TileOf128Tokens>(size, args, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace engram

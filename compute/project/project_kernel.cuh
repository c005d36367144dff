#ifndef ENGRAM_COMPUTE_PROJECT_PROJECT_KERNEL_CUH_
#define ENGRAM_COMPUTE_PROJECT_PROJECT_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "compute/project/fragment_layout.h"
#include "compute/project/project_args.h"
#include "compute/project/project_shape.h"
#include "compute/project/project_tile.cuh"
#include "core/gpu/ptx.cuh"

namespace engram {

// A lane's walk along K through kTiles neighbouring tiles of `base`, [tiles]
// [blocks][32 lanes][16 bytes]. The last tile stands in for those past it.
template <uint32_t kTiles>
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(const void* base, uint32_t first_tile,
                                      uint32_t tile_count, uint32_t blocks)
      : base_(static_cast<const uint4*>(base)) {
#pragma unroll
    for (uint32_t i = 0; i < kTiles; ++i) {
      const uint32_t wanted = first_tile + i;
      const uint32_t tile = wanted < tile_count ? wanted : tile_count - 1;
      at_[i] = tile * blocks * 32 + threadIdx.x % 32;
    }
  }
  // Block `i` counted from the first of the stage.
  __device__ __forceinline__ const uint4* Block(uint32_t tile, uint32_t stage,
                                                uint32_t i) const {
    return base_ + (at_[tile] + stage * (kStageBlocks * 32)) + size_t{i} * 32;
  }

 private:
  const uint4* const base_;
  uint32_t at_[kTiles];
};

// A warp's weights on their way through shared memory. A lane reads nothing
// but what it copied itself: no barrier is needed.
template <class Tile>
class StagedWeights {
 public:
  __device__ __forceinline__ StagedWeights(const ProjectArgs& args,
                                           uint32_t first_tile,
                                           unsigned char* shared)
      : walk_(args.codes, first_tile,
              static_cast<uint32_t>(RoundUpTo(args.out, kScaleFeatures)) /
                  kTileFeatures,
              static_cast<uint32_t>(PackedBlocks(args.in))),
        scales_(reinterpret_cast<const uint4*>(args.scales +
                                               ScaleRow(args, first_tile))),
        shared_(reinterpret_cast<uint4*>(shared) + threadIdx.x % 32) {}

  __device__ __forceinline__ void Copy(uint32_t stage) {
#pragma unroll
    for (uint32_t m = 0; m < Tile::kFeatureTiles; ++m) {
#pragma unroll
      for (uint32_t i = 0; i < kStageBlocks; ++i) {
        gpu::CopyAsync(At(stage) + (i * Tile::kFeatureTiles + m) * 32,
                       walk_.Block(m, stage, i));
      }
    }
    gpu::CopyAsync(At(stage) + kScalesAt, scales_ + stage);
  }
  // Of block `i` of the stage.
  __device__ __forceinline__ uint4 Codes(uint32_t stage, uint32_t i,
                                         uint32_t m) const {
    return At(stage)[(i * Tile::kFeatureTiles + m) * 32];
  }
  __device__ __forceinline__ float Scale(uint32_t stage, uint32_t i) const {
    return reinterpret_cast<const float*>(At(stage) + kScalesAt)[i];
  }

 private:
  static constexpr uint32_t kScalesAt = kStageBlocks * Tile::kFeatureTiles * 32;
  static_assert((kScalesAt + 32) * sizeof(uint4) == Tile::kWeightStageBytes);

  // Tiles past the last have its scales, too.
  static __device__ __forceinline__ size_t ScaleRow(const ProjectArgs& args,
                                                    uint32_t first_tile) {
    const uint32_t wanted = first_tile * kTileFeatures / kScaleFeatures;
    const uint32_t last = (args.out - 1) / kScaleFeatures;
    return (wanted < last ? wanted : last) * PackedBlocks(args.in);
  }
  __device__ __forceinline__ uint4* At(uint32_t stage) const {
    return shared_ + stage % Tile::kStages * (kScalesAt + 32);
  }

  const TileWalk<Tile::kFeatureTiles> walk_;
  const uint4* const scales_;
  uint4* const shared_;
};

// Tokens for blocks of one warp. The warps of an SM read the same at about the
// same time, so they come from L1, kAhead blocks of K ahead in registers.
template <class Tile>
class CachedTokens {
 public:
  __device__ __forceinline__ CachedTokens(const ProjectArgs& args,
                                          uint32_t first_tile, unsigned char*)
      : blocks_(args.in / kFragmentK),
        walk_(args.tokens, first_tile,
              DivideUp(args.token_count, kFragmentTokens), blocks_) {
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
#pragma unroll
      for (uint32_t n = 0; n < Tile::kTokenTiles; ++n) Load(i, n, i);
    }
  }

  __device__ __forceinline__ void Copy(uint32_t) {}
  __device__ __forceinline__ void Ready() {}
  __device__ __forceinline__ uint4 Get(uint32_t, uint32_t i, uint32_t n) const {
    return held_[i % kAhead][n];
  }
  // Get's values have been used, block by block.
  __device__ __forceinline__ void Used(uint32_t stage, uint32_t i, uint32_t n) {
    Load(i % kAhead, n, stage * kStageBlocks + i + kAhead);
  }

 private:
  static constexpr uint32_t kAhead =
      Tile::kTokenTiles <= 2 ? 4 : (Tile::kTokenTiles <= 4 ? 2 : 1);

  // The last block stands in for those past it, whose weights are 0.
  __device__ __forceinline__ void Load(uint32_t i, uint32_t n, uint32_t block) {
    const uint32_t there = block < blocks_ ? block : blocks_ - 1;
    held_[i][n] = gpu::LoadCached(walk_.Block(n, 0, there));
  }

  const uint32_t blocks_;
  const TileWalk<Tile::kTokenTiles> walk_;
  uint4 held_[kAhead][Tile::kTokenTiles];
};

// Tokens for blocks of several warps, which copy them to shared memory
// together.
template <class Tile>
class SharedTokens {
 public:
  __device__ __forceinline__ SharedTokens(const ProjectArgs& args,
                                          uint32_t first_tile,
                                          unsigned char* shared)
      : walk_(args.tokens, first_tile + threadIdx.x / 32 * kTilesOfAWarp,
              DivideUp(args.token_count, kFragmentTokens),
              args.in / kFragmentK),
        last_block_(args.in / kFragmentK - 1),
        shared_(reinterpret_cast<uint4*>(shared) + threadIdx.x % 32) {}

  // The last block stands in for those past it, whose weights are 0.
  __device__ __forceinline__ void Copy(uint32_t stage) {
#pragma unroll
    for (uint32_t i = 0; i < kStageBlocks; ++i) {
      const uint32_t block = stage * kStageBlocks + i;
#pragma unroll
      for (uint32_t n = 0; n < kTilesOfAWarp; ++n) {
        gpu::CopyAsync(
            At(stage, i, threadIdx.x / 32 * kTilesOfAWarp + n),
            walk_.Block(n, 0, block < last_block_ ? block : last_block_));
      }
    }
  }
  // From here what every thread has waited for may be read, and the stage
  // before it copied over.
  __device__ __forceinline__ void Ready() { __syncthreads(); }
  __device__ __forceinline__ uint4 Get(uint32_t stage, uint32_t i,
                                       uint32_t n) const {
    return *At(stage, i, n);
  }
  __device__ __forceinline__ void Used(uint32_t, uint32_t, uint32_t) {}

 private:
  static_assert(Tile::kTokenTiles % Tile::kWarps == 0);
  static constexpr uint32_t kTilesOfAWarp = Tile::kTokenTiles / Tile::kWarps;

  __device__ __forceinline__ uint4* At(uint32_t stage, uint32_t i,
                                       uint32_t n) const {
    return shared_ +
           stage % Tile::kStages * (kStageBlocks * Tile::kTokenTiles * 32) +
           (i * Tile::kTokenTiles + n) * 32;
  }

  const TileWalk<kTilesOfAWarp> walk_;
  const uint32_t last_block_;
  uint4* const shared_;
};

// kv of kWarps * kFeatureTiles tiles of features and kTokenTiles tiles of
// tokens, all of K. Blocks that follow each other have the same features, so
// that weights are read from memory once and otherwise from L2.
template <class Tile>
class TileProduct {
 public:
  __device__ __forceinline__ explicit TileProduct(const ProjectArgs& args)
      : stages_(static_cast<uint32_t>(PackedBlocks(args.in)) / kStageBlocks),
        feature_tile_(
            (blockIdx.x / TokenBlocks(args) * Tile::kWarps + threadIdx.x / 32) *
            Tile::kFeatureTiles),
        token_tile_(blockIdx.x % TokenBlocks(args) * Tile::kTokenTiles),
        weights_(args, feature_tile_,
                 gpu::SharedBytes() + threadIdx.x / 32 * kWeightBytes),
        tokens_(args, token_tile_,
                gpu::SharedBytes() + Tile::kWarps * kWeightBytes) {}

  __device__ __forceinline__ void Run() {
    constexpr uint32_t kAhead = Tile::kStages - 1;
#pragma unroll 1
    for (uint32_t stage = 0; stage < kAhead; ++stage) Copy(stage);
#pragma unroll 1
    for (uint32_t stage = 0; stage < stages_; ++stage) {
      gpu::WaitCopies<kAhead - 1>();
      tokens_.Ready();
      Copy(stage + kAhead);
#pragma unroll Tile::kUnroll
      for (uint32_t i = 0; i < kStageBlocks; ++i) Add(stage, i);
    }
    gpu::WaitCopies<0>();
  }

  __device__ __forceinline__ void Store(const ProjectArgs& args) const {
    StoreTiles(args, sums_, feature_tile_ * kTileFeatures,
               token_tile_ * kFragmentTokens);
  }

 private:
  using Tokens = std::conditional_t<Tile::kWarps == 1, CachedTokens<Tile>,
                                    SharedTokens<Tile>>;
  static constexpr uint32_t kWeightBytes =
      Tile::kStages * Tile::kWeightStageBytes;

  static __device__ __forceinline__ uint32_t
  TokenBlocks(const ProjectArgs& args) {
    return DivideUp(args.token_count, Tile::kTokenTiles * kFragmentTokens);
  }

  // A group of copies for each stage, an empty one past the last.
  __device__ __forceinline__ void Copy(uint32_t stage) {
    if (stage < stages_) {
      weights_.Copy(stage);
      tokens_.Copy(stage);
    }
    gpu::CommitCopies();
  }

  __device__ __forceinline__ void Add(uint32_t stage, uint32_t i) {
    WeightFragment fragments[Tile::kFeatureTiles];
#pragma unroll
    for (uint32_t m = 0; m < Tile::kFeatureTiles; ++m) {
      fragments[m] = DecodeWeights(weights_.Codes(stage, i, m));
    }
    const float scale = weights_.Scale(stage, i);
#pragma unroll
    for (uint32_t n = 0; n < Tile::kTokenTiles; ++n) {
      const uint4 token = tokens_.Get(stage, i, n);
#pragma unroll
      for (uint32_t m = 0; m < Tile::kFeatureTiles; ++m) {
        AddBlock(fragments[m], token, scale, sums_[m][n]);
      }
      tokens_.Used(stage, i, n);
    }
  }

  const uint32_t stages_;
  const uint32_t feature_tile_;
  const uint32_t token_tile_;
  StagedWeights<Tile> weights_;
  Tokens tokens_;
  float sums_[Tile::kFeatureTiles][Tile::kTokenTiles][4] = {};
};

// Launched in the shape of ProjectLaunchShape.
template <class Tile>
__global__ void __launch_bounds__(Tile::kWarps * 32, Tile::kBlocksOfAnSm)
    ProjectTile(ProjectArgs args) {
  TileProduct<Tile> product(args);
  product.Run();
  product.Store(args);
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECT_KERNEL_CUH_

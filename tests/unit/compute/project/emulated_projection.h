#ifndef ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_EMULATED_PROJECTION_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_EMULATED_PROJECTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compute/project/fragment_layout.h"
#include "compute/project/project_args.h"
#include "compute/project/project_kernel.cuh"
#include "compute/project/project_shape.h"
#include "compute/project/projection_weights.h"
#include "compute/project/weight_pack.h"
#include "core/base/check.h"
#include "core/base/thread_pool.h"
#include "core/model/number_formats.h"
#include "tests/gpu/emulator/emulator.h"

namespace engram::test {

// The GPU's projection, run by the emulator.
class EmulatedProjection {
 public:
  explicit EmulatedProjection(const ProjectionWeights& weights)
      : in_(weights.in),
        out_(weights.out),
        codes_(PackedCodeCount(out_, in_)),
        scales_(PackedScaleCount(out_, in_)) {
    ThreadPool pool({.thread_count = 2});
    PackWeights(weights, &pool, absl::MakeSpan(codes_),
                absl::MakeSpan(scales_));
  }

  // rows: [tokens, in], exact in bf16. Returns kv [tokens, out], and checks
  // that nothing beyond was written.
  std::vector<uint16_t> Run(ProjectTileSize size, absl::Span<const float> rows,
                            uint64_t seed = 0) const {
    const size_t tokens = rows.size() / in_;
    std::vector<uint16_t> fragments(FragmentCount(tokens, in_));
    for (size_t i = 0; i < rows.size(); ++i) {
      fragments[FragmentIndex(i / in_, i % in_, in_)] = FloatToBf16(rows[i]);
    }
    std::vector<uint16_t> kv(tokens * out_ + kGuard, kPoison);
    ProjectArgs args;
    args.codes = codes_.data();
    args.scales = scales_.data();
    args.tokens = fragments.data();
    args.kv = kv.data();
    args.in = in_;
    args.out = out_;
    args.token_count = static_cast<uint32_t>(tokens);
    ENGRAM_CHECK(ProjectFits(args));
    emulator::Launch(ProjectLaunchShape(size, args), seed, KernelOf(size),
                     args);
    ENGRAM_CHECK(std::all_of(kv.end() - kGuard, kv.end(),
                             [](uint16_t value) { return value == kPoison; }));
    kv.resize(tokens * out_);
    return kv;
  }

 private:
  static constexpr size_t kGuard = 512;
  static constexpr uint16_t kPoison = 0x7FA5;  // NaN

  static void (*KernelOf(ProjectTileSize size))(ProjectArgs) {
    switch (size) {
      case ProjectTileSize::k8Tokens:
        return ProjectTile<TileOf8Tokens>;
      case ProjectTileSize::k16Tokens:
        return ProjectTile<TileOf16Tokens>;
      case ProjectTileSize::k32Tokens:
        return ProjectTile<TileOf32Tokens>;
      case ProjectTileSize::k64Tokens:
        return ProjectTile<TileOf64Tokens>;
      case ProjectTileSize::k128Tokens:
        return ProjectTile<TileOf128Tokens>;
    }
    return nullptr;
  }

  const uint32_t in_;
  const uint32_t out_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_EMULATED_PROJECTION_H_

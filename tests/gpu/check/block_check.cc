// The block of the GPU against the oracle's goldens and against the CPU's
// block.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/block/gpu_block.h"
#include "compute/project/gpu_projection.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/block_compare.h"
#include "tests/gpu/check/block_model.h"
#include "tests/gpu/check/checks.h"
#include "tests/testing/golden_step.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kThreads = 4;

// Small tiles and few slots, so that steps are cut and callers wait.
absl::StatusOr<std::unique_ptr<const EngramBlock>> MakeBlock(
    GpuContext& context, const Checkpoint& checkpoint, const TokenMap& map,
    ProjectionMode mode, size_t tile_tokens) {
  GpuBlockOptions options;
  options.device = context.device().index;
  options.projection = mode;
  options.pool = &context.pool();
  options.slots = 2;
  options.tile_tokens = tile_tokens;
  options.pinned_rows_bytes = uint64_t{32} << 20;
  return CreateGpuEngramBlock(checkpoint, map, options);
}

std::vector<ProjectionMode> UsableModes() {
  std::vector<ProjectionMode> modes = {ProjectionMode::kInvariant};
  if (UsableProjectionMode(ProjectionMode::kFast) == ProjectionMode::kFast) {
    modes.push_back(ProjectionMode::kFast);
  }
  return modes;
}

absl::Status CheckGoldenCase(GpuContext& context, const std::string& name,
                             const std::string& checkpoint_dir,
                             BlockCounts& counts) {
  ENGRAM_ASSIGN_OR_RETURN(
      const auto golden,
      test::GoldenStep::Open(absl::StrCat(context.options().data_dir, "/", name,
                                          ".golden.safetensors"),
                             checkpoint_dir));
  // Few tokens, for which the fast mode is the invariant one.
  ENGRAM_ASSIGN_OR_RETURN(
      const auto block,
      MakeBlock(context, golden->checkpoint(), golden->token_map(),
                ProjectionMode::kInvariant, 16));
  return Annotate(CompareGolden(*golden, *block, true, counts), name);
}

struct BlockSizes {
  size_t tile_tokens;
  std::vector<size_t> token_counts;
  size_t together;
  std::vector<size_t> pieces;
  size_t rounds;
};

absl::Status CheckModel(GpuContext& context, const BlockModel& model,
                        const BlockSizes& invariant_sizes,
                        BlockCounts& counts) {
  const uint64_t seed = context.seed();
  for (const ProjectionMode mode : UsableModes()) {
    BlockSizes sizes = invariant_sizes;
    if (mode == ProjectionMode::kFast) {
      // Enough tokens in a tile for cuBLASLt.
      sizes.tile_tokens = GpuProjection::kInvariantTokens + 16;
      sizes.token_counts = {1, sizes.tile_tokens - 3};
    }
    ENGRAM_ASSIGN_OR_RETURN(
        const auto block,
        MakeBlock(context, model.checkpoint(), model.token_map(), mode,
                  sizes.tile_tokens));
    const BlockPair pair = {*block, model.cpu_block(), model.checkpoint(),
                            mode == ProjectionMode::kInvariant};
    const auto check = [&]() -> absl::Status {
      ENGRAM_RETURN_IF_ERROR(
          CompareRandomSteps(pair, sizes.token_counts, seed, counts));
      ENGRAM_RETURN_IF_ERROR(CompareCallForms(pair, 5, seed + 1));
      if (pair.batch_invariant) {
        ENGRAM_RETURN_IF_ERROR(
            ComparePieces(pair, sizes.together, sizes.pieces, seed + 2));
      }
      ENGRAM_RETURN_IF_ERROR(CompareConcurrent(pair, sizes.together, kThreads,
                                               sizes.rounds, seed + 3));
      ENGRAM_RETURN_IF_ERROR(CompareRefusals(pair, seed + 4));
      return block->health();
    };
    ENGRAM_RETURN_IF_ERROR(Annotate(check(), ToString(mode)));
  }
  return absl::OkStatus();
}

std::string Modes() {
  return UsableModes().size() == 2 ? "both modes"
                                   : "invariant mode only: no cuBLASLt";
}

}  // namespace

absl::StatusOr<Outcome> CheckGoldens(GpuContext& context) {
  BlockCounts counts;
  std::string cases;
  for (const char* name : {"tiny", "odd", "tiny-scale"}) {
    ENGRAM_RETURN_IF_ERROR(CheckGoldenCase(
        context, name, absl::StrCat(context.options().data_dir, "/", name),
        counts));
    absl::StrAppend(&cases, name, ", ");
  }
  const std::string& v41_mini = context.options().v41_mini_dir;
  if (context.quick() || v41_mini.empty()) {
    absl::StrAppend(&cases, "not v41-mini (",
                    context.quick() ? "--quick" : "no checkpoint given", ")");
  } else {
    ENGRAM_RETURN_IF_ERROR(
        CheckGoldenCase(context, "v41-mini", v41_mini, counts));
    absl::StrAppend(&cases, "v41-mini");
  }
  return Passed(absl::StrCat(cases, "; ", counts.ToString()));
}

absl::StatusOr<Outcome> CheckBlockSmall(GpuContext& context) {
  BlockCounts counts;
  const BlockSizes sizes =
      context.quick()
          ? BlockSizes{8, {1, 9}, 11, {1, 4}, 1}
          : BlockSizes{16, {1, 2, 7, 16, 17, 50}, 37, {1, 2, 5, 16}, 5};
  for (const char* preset : {"tiny", "odd", "tiny-scale"}) {
    ENGRAM_ASSIGN_OR_RETURN(
        const auto model,
        BlockModel::Make(preset, context.seed(), &context.pool()));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CheckModel(context, *model, sizes, counts), preset));
  }
  return Passed(absl::StrCat(Modes(), "; ", counts.ToString()));
}

absl::StatusOr<Outcome> CheckBlockV41(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const BlockModel* model, context.V41Model());
  BlockCounts counts;
  const BlockSizes sizes =
      context.Sized(BlockSizes{64, {1, 3, 16, 65, 150}, 100, {1, 7, 64}, 3},
                    BlockSizes{8, {1, 9}, 11, {1, 4}, 1});
  ENGRAM_RETURN_IF_ERROR(CheckModel(context, *model, sizes, counts));
  return Passed(absl::StrCat(Modes(), "; ", counts.ToString()));
}

}  // namespace engram::gpu_check

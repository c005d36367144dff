// The projection at V4.1's shape in both modes, few tokens against the time to
// read the weights, many against cuBLASLt.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/project/gpu_projection.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/matmul_ceiling.h"
#include "tests/gpu/check/projection_cases.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kSets = 2;  // of 157 MB: one drives the other out of the L2
constexpr size_t kFewTokens = 16;

struct Shape {
  uint32_t in = 6144;
  uint32_t out = 25600;
  std::vector<size_t> token_counts = {1, 2, 4, 8, 16, 64, 256, 1024, 4096};
};
constexpr size_t kGoalTokens = 4096;  // against cuBLASLt

struct Buffers {
  DeviceBuffer tokens;
  DeviceBuffer kv;
};

absl::StatusOr<Buffers> MakeBuffers(GpuContext& context, const Shape& shape,
                                    size_t tokens, TokenLayout layout) {
  Random random(context.seed() + tokens);
  Buffers buffers;
  ENGRAM_ASSIGN_OR_RETURN(
      buffers.tokens, Upload(InLayout(RandomTokens(random, tokens, shape.in),
                                      shape.in, 0, tokens, layout)));
  ENGRAM_ASSIGN_OR_RETURN(
      buffers.kv,
      AllocatePoisoned(tokens * shape.out * sizeof(uint16_t), 0xA5));
  return buffers;
}

absl::Status TimeOne(
    GpuContext& context, const Shape& shape, ProjectionMode mode, size_t tokens,
    const std::vector<std::unique_ptr<const GpuProjection>>& projections) {
  ENGRAM_ASSIGN_OR_RETURN(const Buffers buffers,
                          MakeBuffers(context, shape, tokens,
                                      projections[0]->token_layout(tokens)));
  const TimingPlan plan = context.Plan(kSets);
  ENGRAM_ASSIGN_OR_RETURN(const Timed timed,
                          TimeLaunches(context.stream(), plan,
                                       [&](size_t set, GpuStreamHandle stream) {
                                         return projections[set]->Project(
                                             buffers.tokens.as<uint16_t>(),
                                             tokens, buffers.kv.as<uint16_t>(),
                                             stream);
                                       }));
  const std::string name =
      absl::StrCat("projection ", ToString(mode), ", ", tokens, " tokens");
  if (tokens <= kFewTokens) {
    ENGRAM_ASSIGN_OR_RETURN(const double rate, context.CopyRate());
    const double weight_bytes = 1.0 * shape.in * shape.out;
    Figure figure = FigureOf(name, timed, weight_bytes, "B", kCopyCeiling);
    figure.note = "bytes of the fp8 weights";
    context.report().AddRate(std::move(figure), rate, 0.7);
    return absl::OkStatus();
  }
  const double flops = 2.0 * shape.in * shape.out * static_cast<double>(tokens);
  const absl::StatusOr<double> rate =
      MatmulRate(context, {shape.in, shape.out, tokens});
  Figure figure =
      FigureOf(name, timed, flops, "FLOP", MatmulCeilingName(tokens));
  if (!rate.ok()) {
    figure.ceiling = "";
    figure.note = std::string(rate.status().message());
    context.report().AddRate(std::move(figure), 0, std::nullopt);
    return absl::OkStatus();
  }
  const bool has_goal = tokens == kGoalTokens && mode == ProjectionMode::kFast;
  context.report().AddRate(
      std::move(figure), *rate,
      has_goal ? std::optional<double>(0.9) : std::nullopt);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> TimeProjection(GpuContext& context) {
  const Shape shape = context.Sized(Shape{}, Shape{96, 64, {1, 9, 70}});
  std::vector<RandomWeights> weights;
  for (size_t set = 0; set < kSets; ++set) {
    Random random(context.seed() + set);
    weights.push_back(MakeWeights(shape.in, shape.out, random));
  }
  bool fast = false;
  for (const ProjectionMode wanted :
       {ProjectionMode::kInvariant, ProjectionMode::kFast}) {
    const ProjectionMode mode = UsableProjectionMode(wanted);
    if (mode != wanted) break;
    fast = mode == ProjectionMode::kFast;
    std::vector<std::unique_ptr<const GpuProjection>> projections;
    for (const RandomWeights& one : weights) {
      ENGRAM_ASSIGN_OR_RETURN(
          projections.emplace_back(),
          GpuProjection::Create(
              one.View(),
              {.mode = mode, .max_tokens = shape.token_counts.back()},
              &context.pool()));
    }
    for (const size_t tokens : shape.token_counts) {
      ENGRAM_RETURN_IF_ERROR(
          TimeOne(context, shape, mode, tokens, projections));
    }
  }
  if (!fast) context.report().AddNote("fast projection: no cuBLASLt here");
  return Passed(fast ? "both modes" : "invariant mode; no cuBLASLt here");
}

}  // namespace engram::gpu_check

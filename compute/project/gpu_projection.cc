#include "compute/project/gpu_projection.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/project/fast_product.h"
#include "compute/project/project_args.h"
#include "compute/project/project_launch.h"
#include "compute/project/project_shape.h"
#include "compute/project/weight_pack.h"
#include "core/base/log.h"
#include "core/base/page_buffer.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_status.h"

namespace engram {
namespace {

template <typename T>
absl::Span<T> As(PageBuffer& buffer) {
  return {reinterpret_cast<T*>(buffer.bytes().data()),
          buffer.bytes().size() / sizeof(T)};
}

// fp8, for the kernels of project_launch.h.
struct PackedWeights {
  DeviceBuffer codes;
  DeviceBuffer scales;
};

absl::StatusOr<PackedWeights> UploadPacked(const ProjectionWeights& weights,
                                           ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer codes,
      PageBuffer::Allocate(PackedCodeCount(weights.out, weights.in)));
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer scales,
      PageBuffer::Allocate(PackedScaleCount(weights.out, weights.in) *
                           sizeof(float)));
  PackWeights(weights, pool, As<uint8_t>(codes), As<float>(scales));
  PackedWeights packed;
  ENGRAM_ASSIGN_OR_RETURN(packed.codes, DeviceBuffer::Upload(codes.bytes()));
  ENGRAM_ASSIGN_OR_RETURN(packed.scales, DeviceBuffer::Upload(scales.bytes()));
  return packed;
}

// bf16, for cuBLASLt.
absl::StatusOr<DeviceBuffer> UploadExpanded(const ProjectionWeights& weights,
                                            ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer values,
      PageBuffer::Allocate(weights.codes.size() * sizeof(uint16_t)));
  ENGRAM_RETURN_IF_ERROR(ExpandWeights(weights, pool, As<uint16_t>(values)));
  return DeviceBuffer::Upload(values.bytes());
}

bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

class UploadedProjection final : public GpuProjection {
 public:
  UploadedProjection(const ProjectionWeights& weights, const Options& options,
                     PackedWeights packed)
      : in_(weights.in),
        out_(weights.out),
        max_tokens_(options.max_tokens),
        packed_(std::move(packed)) {}

  absl::Status AddFast(const ProjectionWeights& weights, ThreadPool* pool) {
    ENGRAM_RETURN_IF_ERROR(FastProduct::Available());
    ENGRAM_ASSIGN_OR_RETURN(expanded_, UploadExpanded(weights, pool));
    ENGRAM_ASSIGN_OR_RETURN(
        fast_, FastProduct::Create(
                   {.in = in_, .out = out_, .max_tokens = max_tokens_}));
    return absl::OkStatus();
  }

  uint32_t in() const override { return in_; }
  uint32_t out() const override { return out_; }

  TokenLayout token_layout(size_t token_count) const override {
    return IsFast(token_count) ? TokenLayout::kRowMajor
                               : TokenLayout::kFragments;
  }

  absl::Status Project(const uint16_t* tokens, size_t token_count, uint16_t* kv,
                       GpuStreamHandle stream) const override {
    if (token_count == 0) return absl::OkStatus();
    ENGRAM_RETURN_IF_ERROR(Check(tokens, token_count, kv));
    if (IsFast(token_count)) {
      return fast_->Multiply({.weights = expanded_.as<uint16_t>(),
                              .tokens = tokens,
                              .kv = kv,
                              .token_count = token_count},
                             stream);
    }
    ProjectArgs args;
    args.codes = packed_.codes.as<uint8_t>();
    args.scales = packed_.scales.as<float>();
    args.tokens = tokens;
    args.kv = kv;
    args.in = in_;
    args.out = out_;
    args.token_count = static_cast<uint32_t>(token_count);
    ENGRAM_RETURN_IF_GPU_ERROR(
        LaunchProject(ProjectTileSizeFor(args.token_count), args, stream),
        absl::StrCat("projecting ", token_count, " tokens"));
    return absl::OkStatus();
  }

 private:
  bool IsFast(size_t token_count) const {
    return fast_ != nullptr && token_count > kInvariantTokens;
  }

  absl::Status Check(const uint16_t* tokens, size_t token_count,
                     const uint16_t* kv) const {
    if (token_count > max_tokens_) {
      return absl::InvalidArgumentError(
          absl::StrCat("projection of ", token_count, " tokens, at most ",
                       max_tokens_, " at a time"));
    }
    if (!IsAligned(tokens) || !IsAligned(kv)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "projection from ", absl::Hex(reinterpret_cast<uintptr_t>(tokens)),
          " to ", absl::Hex(reinterpret_cast<uintptr_t>(kv)),
          ": addresses must be multiples of 16"));
    }
    return absl::OkStatus();
  }

  const uint32_t in_;
  const uint32_t out_;
  const size_t max_tokens_;
  const PackedWeights packed_;
  DeviceBuffer expanded_;                    // if kFast: [out, in]
  std::unique_ptr<const FastProduct> fast_;  // if kFast
};

absl::Status CheckCountable(const ProjectionWeights& weights,
                            size_t max_tokens) {
  ProjectArgs args;
  args.in = weights.in;
  args.out = weights.out;
  args.token_count = static_cast<uint32_t>(max_tokens);
  if (args.token_count == max_tokens && ProjectFits(args)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a projection of ", weights.in, " to ", weights.out, " features for ",
      max_tokens, " tokens is beyond what the GPU's kernels can count"));
}

}  // namespace

ProjectionMode UsableProjectionMode(ProjectionMode wanted) {
  if (wanted != ProjectionMode::kFast) return wanted;
  const absl::Status status = FastProduct::Available();
  if (status.ok()) return wanted;
  spdlog::warn("projection: {} instead of {}: {}",
               ToString(ProjectionMode::kInvariant), ToString(wanted),
               std::string(status.message()));
  return ProjectionMode::kInvariant;
}

absl::StatusOr<std::unique_ptr<const GpuProjection>> GpuProjection::Create(
    const ProjectionWeights& weights, const Options& options,
    ThreadPool* pool) {
  ENGRAM_RETURN_IF_ERROR(CheckProjectionWeights(weights, pool));
  ENGRAM_RETURN_IF_ERROR(CheckCountable(weights, options.max_tokens));
  ENGRAM_ASSIGN_OR_RETURN(PackedWeights packed, UploadPacked(weights, pool));
  auto projection =
      std::make_unique<UploadedProjection>(weights, options, std::move(packed));
  if (options.mode == ProjectionMode::kFast) {
    ENGRAM_RETURN_IF_ERROR(projection->AddFast(weights, pool));
  }
  return std::unique_ptr<const GpuProjection>(std::move(projection));
}

}  // namespace engram

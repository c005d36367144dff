// Gate and add at V4.1's shapes.

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/gate/gate.h"
#include "compute/gate/gpu_gate.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_status.h"
#include "core/model/number_formats.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/fill_random_launch.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/random_inputs.h"

namespace engram::gpu_check {
namespace {

constexpr uint32_t kHc = 4;
constexpr uint32_t kDim = 5120;
constexpr size_t kKvWidth = size_t{kHc + 1} * kDim;
constexpr size_t kStreamWidth = size_t{kHc} * kDim;
constexpr size_t kCheckedTokens = 4;

struct GateSet {
  DeviceBuffer streams;
  DeviceBuffer kv;
  DeviceBuffer out;
  DeviceBuffer gate;
  DeviceBuffer value;
};

absl::StatusOr<DeviceBuffer> RandomBf16(GpuContext& context, size_t count,
                                        uint64_t seed) {
  ENGRAM_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                          DeviceBuffer::Allocate(count * sizeof(uint16_t)));
  ENGRAM_RETURN_IF_GPU_ERROR(
      LaunchFillRandom({buffer.as<uint64_t>(), count / 4, seed, 1},
                       context.stream().handle()),
      "filling an input");
  return buffer;
}

absl::StatusOr<GateSet> MakeSet(GpuContext& context, size_t tokens,
                                uint64_t seed) {
  GateSet set;
  ENGRAM_ASSIGN_OR_RETURN(set.streams,
                          RandomBf16(context, tokens * kStreamWidth, seed));
  ENGRAM_ASSIGN_OR_RETURN(set.kv,
                          RandomBf16(context, tokens * kKvWidth, seed + 1));
  ENGRAM_ASSIGN_OR_RETURN(set.out,
                          AllocatePoisoned(set.streams.size_bytes(), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(set.gate,
                          AllocatePoisoned(tokens * kHc * sizeof(float), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(
      set.value, AllocatePoisoned(tokens * kDim * sizeof(uint16_t), 0xA5));
  return set;
}

enum class Wanted { kStreams, kContribution };

GateArgs ArgsOf(const GateSet& set, const DeviceBuffer& weight, size_t tokens,
                Wanted wanted) {
  GateArgs args;
  args.token_count = static_cast<uint32_t>(tokens);
  args.hc_mult = kHc;
  args.dim = kDim;
  args.norm_eps = 1e-20F;
  args.streams = set.streams.data();
  args.kv = set.kv.as<uint16_t>();
  args.weight = weight.as<float>();
  if (wanted == Wanted::kStreams) {
    args.out_streams = set.out.data();
  } else {
    args.out_gate = set.gate.as<float>();
    args.out_value = set.value.as<uint16_t>();
  }
  return args;
}

// The first tokens of what was timed, within one bf16 ulp of the CPU's.
absl::Status VerifyStreams(const GateSet& set,
                           const std::vector<float>& weight) {
  ENGRAM_ASSIGN_OR_RETURN(
      const auto streams,
      Download<std::byte>(set.streams, kCheckedTokens * kStreamWidth * 2));
  ENGRAM_ASSIGN_OR_RETURN(
      const auto kv, Download<uint16_t>(set.kv, kCheckedTokens * kKvWidth));
  ENGRAM_ASSIGN_OR_RETURN(
      const auto out,
      Download<uint16_t>(set.out, kCheckedTokens * kStreamWidth));
  const GateWeights weights = {kHc, kDim, 1e-20F, weight};
  std::vector<float> gate(kCheckedTokens * kHc);
  std::vector<std::byte> wanted_bytes(streams.size());
  ComputeGate(weights, StreamDtype::kBf16, streams, kv, {},
              absl::MakeSpan(gate));
  AddContribution(weights, StreamDtype::kBf16, streams, kv, gate, {},
                  absl::MakeSpan(wanted_bytes));
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t wanted = 0;
    std::memcpy(&wanted, &wanted_bytes[2 * i], sizeof(wanted));
    const int apart = static_cast<int>(out[i]) - static_cast<int>(wanted);
    if (apart < -1 || apart > 1) {
      return absl::DataLossError(absl::StrCat(
          "stream value ", i, " of the timed gate is ", Bf16ToFloat(out[i]),
          " instead of ", Bf16ToFloat(wanted)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> TimeGate(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const double copy_rate, context.CopyRate());
  Random random(context.seed());
  const std::vector<float> weight = RandomGateWeights(random, kStreamWidth);
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer device_weight, Upload(weight));
  struct Shape {
    size_t tokens;
    size_t sets;  // together far above the L2
    std::optional<double> goal;
  };
  for (const Shape& shape :
       {context.Sized(Shape{64, 32, std::nullopt}, Shape{4, 2}),
        context.Sized(Shape{4096, 2, 0.85}, Shape{5, 2})}) {
    std::vector<GateSet> sets;
    for (size_t i = 0; i < shape.sets; ++i) {
      ENGRAM_ASSIGN_OR_RETURN(
          sets.emplace_back(),
          MakeSet(context, shape.tokens, context.seed() + 2 * i));
    }
    for (const Wanted wanted : {Wanted::kStreams, Wanted::kContribution}) {
      const TimingPlan plan = context.Plan(shape.sets);
      ENGRAM_ASSIGN_OR_RETURN(
          const Timed timed,
          TimeLaunches(
              context.stream(), plan, [&](size_t set, GpuStreamHandle stream) {
                return GateOnGpu(
                    ArgsOf(sets[set], device_weight, shape.tokens, wanted),
                    stream);
              }));
      const bool streams = wanted == Wanted::kStreams;
      const double bytes_a_token =
          streams ? 2.0 * (2 * kStreamWidth + kKvWidth)
                  : 2.0 * (kStreamWidth + kKvWidth + kDim) + 4.0 * kHc;
      context.report().AddRate(
          FigureOf(absl::StrCat(streams ? "gate + add, " : "gate + value, ",
                                shape.tokens, " tokens"),
                   timed, bytes_a_token * static_cast<double>(shape.tokens),
                   "B", kCopyCeiling),
          copy_rate, streams ? shape.goal : std::nullopt);
    }
    ENGRAM_RETURN_IF_ERROR(VerifyStreams(sets[0], weight));
  }
  return Passed("bf16 streams, all live; some tokens compared");
}

}  // namespace engram::gpu_check

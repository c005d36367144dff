// Gate and add on the device against gate.h, bit for bit; the gate itself
// within what two exponentials may differ by.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/gate/gate.h"
#include "compute/gate/gpu_gate.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gate_cases.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/random_inputs.h"

namespace engram::gpu_check {
namespace {

// What follows an output must stay as it was.
constexpr size_t kGuardBytes = 256;

// `values` on the device, behind one value of it if they are to be shifted.
template <typename T>
struct Shifted {
  DeviceBuffer buffer;
  T* data = nullptr;
};

template <typename T>
absl::StatusOr<Shifted<T>> UploadShifted(const std::vector<T>& values,
                                         size_t shift) {
  std::vector<T> padded(shift);
  padded.insert(padded.end(), values.begin(), values.end());
  Shifted<T> shifted;
  ENGRAM_ASSIGN_OR_RETURN(shifted.buffer, Upload(padded));
  shifted.data = shifted.buffer.template as<T>() + shift;
  return shifted;
}

// An output of `count` values and its guard.
template <typename T>
absl::StatusOr<std::vector<T>> TakeOutput(const DeviceBuffer& buffer,
                                          size_t shift, size_t count,
                                          uint8_t poison) {
  ENGRAM_ASSIGN_OR_RETURN(
      std::vector<T> all,
      Download<T>(buffer, shift + count + kGuardBytes / sizeof(T)));
  const auto* bytes = reinterpret_cast<const uint8_t*>(all.data());
  for (size_t i = 0; i < all.size() * sizeof(T); ++i) {
    const bool inside =
        i >= shift * sizeof(T) && i < (shift + count) * sizeof(T);
    if (!inside && bytes[i] != poison) {
      return absl::DataLossError(
          absl::StrCat("byte ", i, " beside an output was written"));
    }
  }
  return std::vector<T>(all.begin() + shift, all.begin() + shift + count);
}

absl::StatusOr<GateResult> RunGate(GpuContext& context, const GateCase& gate,
                                   const GateInput& input, uint8_t poison) {
  const size_t shift = gate.shifted ? 1 : 0;
  const size_t stream_shift = shift * StreamBytes(gate.dtype);
  const size_t gates = gate.tokens * gate.hc;
  const size_t values = gate.tokens * gate.dim;
  // In place, what surrounds the streams is poison too.
  std::vector<std::byte> around(
      stream_shift + gate.stream_bytes() + kGuardBytes, std::byte{poison});
  std::copy(input.streams.begin(), input.streams.end(),
            around.begin() + stream_shift);
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer streams, Upload(around));
  // The kernel is given memory even where nobody lives.
  ENGRAM_ASSIGN_OR_RETURN(
      const auto kv,
      UploadShifted(input.live_kv.empty() ? input.kv : input.live_kv, shift));
  ENGRAM_ASSIGN_OR_RETURN(const auto weight,
                          UploadShifted(input.weights.weight, shift));
  ENGRAM_ASSIGN_OR_RETURN(const auto live,
                          UploadShifted(input.live_index, shift));
  const auto poisoned = [&](size_t count, size_t value_bytes) {
    return AllocatePoisoned((shift + count) * value_bytes + kGuardBytes,
                            poison);
  };
  ENGRAM_ASSIGN_OR_RETURN(
      const DeviceBuffer out,
      poisoned(gate.stream_bytes() / StreamBytes(gate.dtype),
               StreamBytes(gate.dtype)));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer out_gate,
                          poisoned(gates, sizeof(float)));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer out_value,
                          poisoned(values, sizeof(uint16_t)));
  const DeviceBuffer& out_streams = gate.in_place ? streams : out;
  GateArgs args;
  args.dtype = gate.dtype;
  args.token_count = static_cast<uint32_t>(gate.tokens);
  args.hc_mult = gate.hc;
  args.dim = gate.dim;
  args.norm_eps = input.weights.norm_eps;
  args.streams = streams.data() + stream_shift;
  args.kv = kv.data;
  args.live_index = input.live_index.empty() ? nullptr : live.data;
  args.weight = weight.data;
  if (gate.outputs & 1) args.out_streams = out_streams.data() + stream_shift;
  if (gate.outputs & 2) args.out_gate = out_gate.as<float>() + shift;
  if (gate.outputs & 4) args.out_value = out_value.as<uint16_t>() + shift;
  ENGRAM_RETURN_IF_ERROR(GateOnGpu(args, context.stream().handle()));
  ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
  GateResult result;
  ENGRAM_ASSIGN_OR_RETURN(result.streams,
                          TakeOutput<std::byte>(out_streams, stream_shift,
                                                gate.stream_bytes(), poison));
  ENGRAM_ASSIGN_OR_RETURN(result.gate,
                          TakeOutput<float>(out_gate, shift, gates, poison));
  ENGRAM_ASSIGN_OR_RETURN(
      result.value, TakeOutput<uint16_t>(out_value, shift, values, poison));
  return result;
}

// All outputs; then each set of outputs, in place and not: the same values,
// and what is not wanted stays poison.
absl::Status RunCase(GpuContext& context, GateCase gate, uint64_t seed,
                     GateCounts& counts) {
  Random random(seed);
  const GateInput input = MakeGateInput(gate, random);
  ENGRAM_ASSIGN_OR_RETURN(const GateResult all,
                          RunGate(context, gate, input, 0xA5));
  ENGRAM_RETURN_IF_ERROR(CompareGate(gate, input, all, counts));
  for (gate.outputs = 1; gate.outputs <= 7; ++gate.outputs) {
    for (const bool in_place : {false, true}) {
      gate.in_place = in_place;
      ENGRAM_ASSIGN_OR_RETURN(const GateResult some,
                              RunGate(context, gate, input, 0x5A));
      ENGRAM_RETURN_IF_ERROR(
          Annotate(CompareGateSet(gate, input, some, all, 0x5A), gate.Name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> CheckGate(GpuContext& context) {
  struct Shape {
    uint32_t hc;
    uint32_t dim;
    size_t tokens;
  };
  std::vector<Shape> shapes = {{3, 96, 5},  {1, 1, 3},   {2, 33, 4},
                               {4, 256, 2}, {5, 260, 3}, {2, 1000, 2},
                               {4, 5120, 1}};
  if (!context.quick()) {
    shapes.insert(shapes.end(), {{4, 5120, 3},
                                 {4, 5120, 101},
                                 {4, 4096, 64},
                                 {1, 7168, 33},
                                 {4, 10240, 9},
                                 {3, 12345, 7}});
  }
  GateCounts counts;
  uint64_t cases = 0;
  for (const Shape& shape : shapes) {
    for (const StreamDtype dtype : {StreamDtype::kBf16, StreamDtype::kF32}) {
      for (const bool dead : {false, true}) {
        for (const bool shifted : {false, true}) {
          const GateCase gate = {shape.hc, shape.dim, shape.tokens,
                                 dtype,    dead,      shifted};
          ENGRAM_RETURN_IF_ERROR(
              Annotate(RunCase(context, gate, context.seed() + cases, counts),
                       gate.Name()));
          ++cases;
        }
      }
    }
  }
  return Passed(absl::StrCat(cases, " cases; ", counts.differ, " of ",
                             counts.gates,
                             " gates differ from the CPU's, streams follow to "
                             "the bit"));
}

}  // namespace engram::gpu_check

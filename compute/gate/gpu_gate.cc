#include "compute/gate/gpu_gate.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compute/gate/gate_launch.h"
#include "compute/gate/gate_shape.h"
#include "core/base/check.h"
#include "core/gpu/gpu_status.h"

namespace engram {

absl::Status GateOnGpu(const GateArgs& args, GpuStreamHandle stream) {
  if (args.hc_mult == 0) {
    return absl::InvalidArgumentError("gate of 0 streams a token");
  }
  if (args.dim == 0 || args.dim > kMaxGateDim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gate of ", args.dim, " features, must be 1 to ", kMaxGateDim));
  }
  if (args.token_count == 0) return absl::OkStatus();
  if (const uint64_t blocks = GateBlockCount(args);
      blocks >= uint64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat("gate of ", args.token_count, " tokens of ", args.hc_mult,
                     " streams: ", blocks, " blocks, must be below 2^31"));
  }
  ENGRAM_CHECK(args.streams != nullptr && args.kv != nullptr &&
               args.weight != nullptr);
  ENGRAM_RETURN_IF_GPU_ERROR(LaunchGate(args, stream), "launch of the gate");
  return absl::OkStatus();
}

}  // namespace engram

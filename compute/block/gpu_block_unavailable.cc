#include "absl/status/status.h"
#include "compute/block/gpu_block.h"

namespace engram {

absl::StatusOr<std::unique_ptr<const EngramBlock>> CreateGpuEngramBlock(
    const Checkpoint&, const TokenMap&, const GpuBlockOptions&) {
  return absl::UnimplementedError("this build has no GPU code");
}

}  // namespace engram

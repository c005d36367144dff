#include "core/gpu/gpu_device.h"

namespace engram {
namespace {

absl::Status NoGpuCode() {
  return absl::UnimplementedError("this build has no GPU code");
}

}  // namespace

absl::StatusOr<std::vector<GpuDevice>> ListGpuDevices() { return NoGpuCode(); }

absl::Status SelectGpuDevice(int) { return NoGpuCode(); }

}  // namespace engram

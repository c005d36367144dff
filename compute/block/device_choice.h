#ifndef ENGRAM_COMPUTE_BLOCK_DEVICE_CHOICE_H_
#define ENGRAM_COMPUTE_BLOCK_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/gpu/gpu_device.h"

namespace engram {

// Which device is asked for: "auto" (a GPU if one will do, else the CPU),
// "cpu", "cuda" (a GPU, the first that will do) or "cuda:N" (that one).
struct DeviceRequest {
  enum class Kind { kAuto, kCpu, kCuda };

  Kind kind = Kind::kAuto;
  std::optional<int> index;  // of "cuda:N"

  // INVALID_ARGUMENT names the text and what it may be.
  static absl::StatusOr<DeviceRequest> Parse(absl::string_view text);
  std::string ToString() const;

  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

struct DeviceChoice {
  std::optional<GpuDevice> gpu;  // none: the CPU
  std::string reason;            // for the log: why this one

  // "cpu" or "cuda:N".
  std::string Name() const;
};

// Compute capability that the kernels are built for, and later ones.
inline constexpr int kMinComputeMajor = 9;

// Chooses among `found`, the result of ListGpuDevices(), a device with memory
// for `needed_bytes`. An error only for kCuda, with the reason of each device
// that was looked at: the code of `found`, NOT_FOUND (no such index),
// FAILED_PRECONDITION (too old) or RESOURCE_EXHAUSTED (too small).
absl::StatusOr<DeviceChoice> ChooseDevice(
    const DeviceRequest& request,
    const absl::StatusOr<std::vector<GpuDevice>>& found, uint64_t needed_bytes);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_DEVICE_CHOICE_H_

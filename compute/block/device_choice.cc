#include "compute/block/device_choice.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compute/project/project_shape.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// The most that a kernel of ours has: the projection's.
constexpr uint64_t kNeededSharedBytes = TileOf128Tokens::kSharedBytes;

std::string Describe(const GpuDevice& device) {
  return absl::StrCat("cuda:", device.index, " (", device.name, ")");
}

absl::Status CheckSuits(const GpuDevice& device, uint64_t needed_bytes) {
  if (device.major < kMinComputeMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(device), " has compute capability ", device.major, ".",
        device.minor, ", needed is at least ", kMinComputeMajor, ".0"));
  }
  if (device.shared_bytes_per_block < kNeededSharedBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(device), " gives a block ", device.shared_bytes_per_block,
        " bytes of shared memory, needed are ", kNeededSharedBytes));
  }
  if (device.memory_bytes < needed_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Describe(device), " has ", device.memory_bytes,
                     " bytes of memory, needed are ", needed_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<GpuDevice> FirstThatSuits(const std::vector<GpuDevice>& devices,
                                         uint64_t needed_bytes) {
  absl::Status first_error = absl::NotFoundError("this machine has no GPU");
  std::vector<std::string> reasons;
  for (const GpuDevice& device : devices) {
    const absl::Status status = CheckSuits(device, needed_bytes);
    if (status.ok()) return device;
    if (reasons.empty()) first_error = status;
    reasons.emplace_back(status.message());
  }
  if (reasons.size() < 2) return first_error;
  return absl::Status(first_error.code(), absl::StrJoin(reasons, "; "));
}

absl::StatusOr<GpuDevice> WithIndex(const std::vector<GpuDevice>& devices,
                                    int index, uint64_t needed_bytes) {
  const auto device =
      std::find_if(devices.begin(), devices.end(),
                   [&](const GpuDevice& d) { return d.index == index; });
  if (device == devices.end()) {
    return absl::NotFoundError(
        absl::StrCat("GPU ", index, " of a machine with ", devices.size(),
                     ", counted from 0"));
  }
  ENGRAM_RETURN_IF_ERROR(CheckSuits(*device, needed_bytes));
  return *device;
}

absl::StatusOr<GpuDevice> ChooseGpu(
    const DeviceRequest& request,
    const absl::StatusOr<std::vector<GpuDevice>>& found,
    uint64_t needed_bytes) {
  ENGRAM_RETURN_IF_ERROR(found.status());
  return request.index.has_value()
             ? WithIndex(*found, *request.index, needed_bytes)
             : FirstThatSuits(*found, needed_bytes);
}

}  // namespace

absl::StatusOr<DeviceRequest> DeviceRequest::Parse(absl::string_view text) {
  if (text == "auto") return DeviceRequest{Kind::kAuto, std::nullopt};
  if (text == "cpu") return DeviceRequest{Kind::kCpu, std::nullopt};
  if (text == "cuda") return DeviceRequest{Kind::kCuda, std::nullopt};
  absl::string_view digits = text;
  int index = 0;
  // SimpleAtoi also takes signs and spaces.
  if (absl::ConsumePrefix(&digits, "cuda:") && digits.size() <= 3 &&
      std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(digits, &index)) {
    return DeviceRequest{Kind::kCuda, index};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", text,
                   "\" is none of auto, cpu, cuda and cuda:N, N up to 999"));
}

std::string DeviceRequest::ToString() const {
  switch (kind) {
    case Kind::kAuto:
      return "auto";
    case Kind::kCpu:
      return "cpu";
    case Kind::kCuda:
      break;
  }
  return index.has_value() ? absl::StrCat("cuda:", *index) : "cuda";
}

std::string DeviceChoice::Name() const {
  return gpu.has_value() ? absl::StrCat("cuda:", gpu->index) : "cpu";
}

absl::StatusOr<DeviceChoice> ChooseDevice(
    const DeviceRequest& request,
    const absl::StatusOr<std::vector<GpuDevice>>& found,
    uint64_t needed_bytes) {
  if (request.kind == DeviceRequest::Kind::kCpu) {
    return DeviceChoice{std::nullopt, "the CPU was asked for"};
  }
  const absl::StatusOr<GpuDevice> gpu = ChooseGpu(request, found, needed_bytes);
  if (gpu.ok()) {
    return DeviceChoice{*gpu, absl::StrCat(gpu->name, ", compute capability ",
                                           gpu->major, ".", gpu->minor)};
  }
  if (request.kind == DeviceRequest::Kind::kAuto) {
    return DeviceChoice{std::nullopt, std::string(gpu.status().message())};
  }
  return Annotate(gpu.status(), absl::StrCat("device ", request.ToString()));
}

}  // namespace engram

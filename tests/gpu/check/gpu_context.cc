#include "tests/gpu/check/gpu_context.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_status.h"
#include "tests/gpu/check/fill_random_launch.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/random_inputs.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Far above the L2 on each side.
constexpr size_t kCopyBytes = 2048 * kMiB;
constexpr size_t kHostCopyBytes = 512 * kMiB;

}  // namespace

absl::StatusOr<std::unique_ptr<GpuContext>> GpuContext::Create(
    const Options& options, const GpuDevice& device, Report& report) {
  ENGRAM_RETURN_IF_ERROR(SelectGpuDevice(device.index));
  auto context = absl::WrapUnique(new GpuContext(options, device, report));
  ENGRAM_ASSIGN_OR_RETURN(context->stream_, GpuStream::Create());
  return context;
}

absl::StatusOr<const BlockModel*> GpuContext::V41Model() {
  if (v41_model_ == nullptr) {
    if (options_.v41_mini_dir.empty() || options_.rehearse) {
      ENGRAM_ASSIGN_OR_RETURN(
          v41_model_,
          BlockModel::Make(Sized("v41-mini", "tiny"), seed_, &pool_));
    } else {
      ENGRAM_ASSIGN_OR_RETURN(v41_model_,
                              BlockModel::Open(options_.v41_mini_dir, &pool_));
    }
  }
  return v41_model_.get();
}

TimingPlan GpuContext::Plan(size_t sets) const {
  TimingPlan plan;
  plan.sets = sets;
  plan.sample_us = Sized(plan.sample_us, 1.0);
  plan.samples = Sized(plan.samples, size_t{2});
  plan.budget = Sized(plan.budget, absl::ZeroDuration());
  return plan;
}

std::optional<double> GpuContext::FindCeiling(const std::string& name) const {
  const auto found = ceilings_.find(name);
  if (found == ceilings_.end()) return std::nullopt;
  return found->second;
}

void GpuContext::AddCeiling(const std::string& name, double rate,
                            absl::string_view unit, absl::string_view how) {
  ceilings_[name] = rate;
  report_.AddCeiling(name, rate, unit, how);
}

absl::StatusOr<double> GpuContext::CopyRate() {
  if (const auto known = FindCeiling(kCopyCeiling)) return *known;
  const size_t bytes = Sized(kCopyBytes, kMiB);
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer from,
                          DeviceBuffer::Allocate(bytes));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer to, DeviceBuffer::Allocate(bytes));
  ENGRAM_RETURN_IF_GPU_ERROR(
      LaunchFillRandom({from.as<uint64_t>(), bytes / 8, seed_},
                       stream_->handle()),
      "filling memory");
  TimingPlan plan = Plan(1);
  plan.max_launches = 1;
  ENGRAM_ASSIGN_OR_RETURN(
      const Timed timed,
      TimeLaunches(*stream_, plan, [&](size_t, GpuStreamHandle stream) {
        return GpuStatus(cudaMemcpyAsync(to.data(), from.data(), bytes,
                                         cudaMemcpyDeviceToDevice, stream),
                         "copy on the device");
      }));
  const double rate =
      2.0 * static_cast<double>(bytes) / (timed.launch_us.median * 1e-6);
  AddCeiling(kCopyCeiling, rate, "B",
             absl::StrCat("bytes read and written, ", bytes / kMiB,
                          " MiB, median of ", timed.launch_us.samples));
  return rate;
}

absl::StatusOr<double> GpuContext::HostToDeviceRate() {
  if (const auto known = FindCeiling(kHostToDeviceCeiling)) return *known;
  const size_t bytes = Sized(kHostCopyBytes, kMiB);
  ENGRAM_ASSIGN_OR_RETURN(const PinnedBuffer from,
                          PinnedBuffer::Allocate(bytes));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer to, DeviceBuffer::Allocate(bytes));
  FillRandomBytes({from.data(), bytes}, seed_);
  TimingPlan plan = Plan(1);
  plan.max_launches = 1;
  plan.samples = Sized<size_t>(20, 2);
  ENGRAM_ASSIGN_OR_RETURN(
      const Timed timed,
      TimeLaunches(*stream_, plan, [&](size_t, GpuStreamHandle stream) {
        return CopyToDevice(to.data(), from.data(), bytes, stream);
      }));
  const double rate =
      static_cast<double>(bytes) / (timed.launch_us.median * 1e-6);
  AddCeiling(kHostToDeviceCeiling, rate, "B",
             absl::StrCat("from pinned memory, ", bytes / kMiB,
                          " MiB, median of ", timed.launch_us.samples));
  return rate;
}

}  // namespace engram::gpu_check

#ifndef ENGRAM_TESTS_GPU_CHECK_GPU_CONTEXT_H_
#define ENGRAM_TESTS_GPU_CHECK_GPU_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/thread_pool.h"
#include "core/gpu/gpu_device.h"
#include "core/gpu/gpu_stream.h"
#include "tests/gpu/check/block_model.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/options.h"
#include "tests/gpu/check/report.h"

namespace engram::gpu_check {

// What the checks of one run share. Ceilings are measured when first asked
// for, and stand in the report then.
class GpuContext {
 public:
  static absl::StatusOr<std::unique_ptr<GpuContext>> Create(
      const Options& options, const GpuDevice& device, Report& report);

  const Options& options() const { return options_; }
  // Small shapes for what is compared.
  bool quick() const { return options_.quick || options_.rehearse; }
  // A size or number of what is timed, and the one of a rehearsal.
  template <typename T>
  T Sized(T full, T rehearsal) const {
    return options_.rehearse ? rehearsal : full;
  }
  // Input sets taken in turn, and how long to measure.
  TimingPlan Plan(size_t sets) const;
  const GpuDevice& device() const { return device_; }
  Report& report() const { return report_; }
  ThreadPool& pool() { return pool_; }
  GpuStream& stream() { return *stream_; }

  // Of one run; each user adds a number of its own.
  uint64_t seed() const { return seed_; }

  // A model of V4.1's shapes (in a rehearsal a tiny one): the checkpoint of
  // --v41-mini, or one made up when first asked for.
  absl::StatusOr<const BlockModel*> V41Model();

  // Bytes per second that a device-to-device copy reads and writes.
  absl::StatusOr<double> CopyRate();
  // Bytes per second of a copy from pinned memory to the device.
  absl::StatusOr<double> HostToDeviceRate();
  // Others: what was measured before under this name, and for who measures.
  std::optional<double> FindCeiling(const std::string& name) const;
  void AddCeiling(const std::string& name, double rate, absl::string_view unit,
                  absl::string_view how);

 private:
  GpuContext(const Options& options, const GpuDevice& device, Report& report)
      : options_(options),
        device_(device),
        report_(report),
        seed_(SeedOf(options)),
        pool_({}) {}

  const Options& options_;
  const GpuDevice device_;
  Report& report_;
  const uint64_t seed_;
  ThreadPool pool_;
  std::unique_ptr<GpuStream> stream_;
  std::map<std::string, double> ceilings_;
  std::unique_ptr<const BlockModel> v41_model_;
};

// Names of the ceilings in the report.
inline constexpr char kCopyCeiling[] = "device copy";
inline constexpr char kHostToDeviceCeiling[] = "host-to-device copy";

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_GPU_CONTEXT_H_

#include "tests/gpu/check/machine_facts.h"

#include <cuda_runtime_api.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/build_info.h"

namespace engram::gpu_check {
namespace {

std::string CpuModel() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    const size_t colon = line.find(": ");
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// CUDA's own way to write a version: 13000 is 13.0.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

void AddFacts(const Options& options, const GpuDevice& device, uint64_t seed,
              Report& report) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  report.AddFact("gpu", device.name);
  report.AddFact("compute_capability",
                 absl::StrCat(device.major, ".", device.minor));
  report.AddFact("multiprocessors", absl::StrCat(device.sm_count));
  report.AddFact("gpu_memory_bytes", absl::StrCat(device.memory_bytes));
  report.AddFact("cuda_of_driver", CudaVersion(driver));
  report.AddFact("cuda_runtime", CudaVersion(runtime));
  report.AddFact("cpu", CpuModel());
  report.AddFact("cpu_threads",
                 absl::StrCat(std::thread::hardware_concurrency()));
  report.AddFact("version", kBuildVersion);
  report.AddFact("commit", kBuildCommit);
  report.AddFact("date", absl::FormatTime(absl::RFC3339_sec, absl::Now(),
                                          absl::UTCTimeZone()));
  report.AddFact("seed", absl::StrCat(seed));
  report.AddFact("sizes", options.rehearse ? "of a rehearsal"
                          : options.quick  ? "of --quick"
                                           : "full");
  for (const std::string& fact : options.facts) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(fact, absl::MaxSplits('=', 1));
    report.AddFact(parts.first, parts.second);
  }
}

}  // namespace engram::gpu_check

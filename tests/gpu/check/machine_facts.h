#ifndef ENGRAM_TESTS_GPU_CHECK_MACHINE_FACTS_H_
#define ENGRAM_TESTS_GPU_CHECK_MACHINE_FACTS_H_

#include "core/gpu/gpu_device.h"
#include "tests/gpu/check/options.h"
#include "tests/gpu/check/report.h"

namespace engram::gpu_check {

// What the numbers were measured on, and which build measured.
void AddFacts(const Options& options, const GpuDevice& device, uint64_t seed,
              Report& report);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_MACHINE_FACTS_H_

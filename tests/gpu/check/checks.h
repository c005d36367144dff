#ifndef ENGRAM_TESTS_GPU_CHECK_CHECKS_H_
#define ENGRAM_TESTS_GPU_CHECK_CHECKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tests/gpu/check/gpu_context.h"
#include "tests/gpu/check/run_checks.h"

namespace engram::gpu_check {

// Correctness. A failure's status says what was off, first of all where.
absl::StatusOr<Outcome> CheckGather(GpuContext& context);
absl::StatusOr<Outcome> CheckHash(GpuContext& context);
absl::StatusOr<Outcome> CheckDecode(GpuContext& context);
absl::StatusOr<Outcome> CheckProjection(GpuContext& context);
absl::StatusOr<Outcome> CheckGate(GpuContext& context);
absl::StatusOr<Outcome> CheckGoldens(GpuContext& context);
absl::StatusOr<Outcome> CheckBlockSmall(GpuContext& context);
absl::StatusOr<Outcome> CheckBlockV41(GpuContext& context);

// Timings; what they computed is compared too, where it fits.
absl::StatusOr<Outcome> TimeGatherFromDevice(GpuContext& context);
absl::StatusOr<Outcome> TimeGatherFromPinned(GpuContext& context);
absl::StatusOr<Outcome> TimeHash(GpuContext& context);
absl::StatusOr<Outcome> TimeDecode(GpuContext& context);
absl::StatusOr<Outcome> TimeProjection(GpuContext& context);
absl::StatusOr<Outcome> TimeGate(GpuContext& context);
absl::StatusOr<Outcome> TimeDecodeStep(GpuContext& context);
absl::StatusOr<Outcome> TimeForward(GpuContext& context);

// All of them in the order they run in. `context` may be null where none is
// run.
std::vector<Check> AllChecks(GpuContext* context);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_CHECKS_H_

#ifndef ENGRAM_TESTS_GPU_CHECK_GPU_TIMER_H_
#define ENGRAM_TESTS_GPU_CHECK_GPU_TIMER_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/gpu/gpu_stream.h"
#include "tests/gpu/check/report.h"
#include "tests/gpu/check/statistics.h"

namespace engram::gpu_check {

struct TimingPlan {
  // Input sets that launches take in turn: together well above the L2, so that
  // no launch finds its inputs there.
  size_t sets = 1;
  // Many short launches are put into a graph, whose replays have no gaps
  // between them. Off where a launch cannot be captured.
  bool capture = true;
  double sample_us = 1000;    // what one sample is to last
  size_t max_launches = 256;  // of one sample
  size_t samples = 50;
  absl::Duration budget = absl::Milliseconds(400);  // then fewer samples
};

struct Timed {
  Summary launch_us;
  size_t launches_a_sample = 1;
  bool captured = false;
};

// Times `launch`, which puts one launch for input set `set` on the stream that
// it is given and does not wait. Warms up first; medians over samples, each
// timed by events.
absl::StatusOr<Timed> TimeLaunches(
    GpuStream& stream, const TimingPlan& plan,
    absl::FunctionRef<absl::Status(size_t set, GpuStreamHandle stream)> launch);

// A figure of these times, without its ceiling.
Figure FigureOf(absl::string_view name, const Timed& timed, double useful,
                absl::string_view unit, absl::string_view ceiling);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_GPU_TIMER_H_

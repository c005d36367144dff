#include "tests/gpu/check/gpu_timer.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "compute/block/gpu_graph.h"
#include "core/base/status_macros.h"

namespace engram::gpu_check {
namespace {

// However long they take.
constexpr size_t kFewestSamples = 5;

using Launch =
    absl::FunctionRef<absl::Status(size_t set, GpuStreamHandle stream)>;

absl::Status LaunchMany(size_t count, size_t sets, GpuStreamHandle stream,
                        Launch launch) {
  for (size_t i = 0; i < count; ++i) {
    ENGRAM_RETURN_IF_ERROR(launch(i % sets, stream));
  }
  return absl::OkStatus();
}

// Events around what `run` puts on the stream.
class Stopwatch {
 public:
  static absl::StatusOr<Stopwatch> Create() {
    Stopwatch watch;
    ENGRAM_ASSIGN_OR_RETURN(watch.start_, GpuEvent::Create());
    ENGRAM_ASSIGN_OR_RETURN(watch.end_, GpuEvent::Create());
    return watch;
  }

  absl::StatusOr<double> Microseconds(GpuStream& stream,
                                      absl::FunctionRef<absl::Status()> run) {
    ENGRAM_RETURN_IF_ERROR(start_->Record(stream));
    ENGRAM_RETURN_IF_ERROR(run());
    ENGRAM_RETURN_IF_ERROR(end_->Record(stream));
    ENGRAM_RETURN_IF_ERROR(stream.Synchronize());
    ENGRAM_ASSIGN_OR_RETURN(const absl::Duration took, end_->Since(*start_));
    return absl::ToDoubleMicroseconds(took);
  }

 private:
  std::unique_ptr<GpuEvent> start_;
  std::unique_ptr<GpuEvent> end_;
};

}  // namespace

absl::StatusOr<Timed> TimeLaunches(GpuStream& stream, const TimingPlan& plan,
                                   Launch launch) {
  ENGRAM_ASSIGN_OR_RETURN(Stopwatch watch, Stopwatch::Create());
  // Loads the kernel; the second round then says how long one takes.
  ENGRAM_RETURN_IF_ERROR(
      LaunchMany(plan.sets, plan.sets, stream.handle(), launch));
  ENGRAM_RETURN_IF_ERROR(stream.Synchronize());
  ENGRAM_ASSIGN_OR_RETURN(
      const double round_us, watch.Microseconds(stream, [&] {
        return LaunchMany(plan.sets, plan.sets, stream.handle(), launch);
      }));
  Timed timed;
  timed.launches_a_sample =
      LaunchesPerSample(round_us / static_cast<double>(plan.sets),
                        plan.sample_us, plan.sets, plan.max_launches);
  timed.captured = plan.capture && timed.launches_a_sample > 1;
  std::unique_ptr<const GpuGraph> graph;
  if (timed.captured) {
    ENGRAM_ASSIGN_OR_RETURN(
        graph, GpuGraph::Capture(stream, [&](GpuStreamHandle capturing) {
          return LaunchMany(timed.launches_a_sample, plan.sets, capturing,
                            launch);
        }));
  }
  const auto run = [&]() -> absl::Status {
    if (graph != nullptr) return graph->Launch(stream);
    return LaunchMany(timed.launches_a_sample, plan.sets, stream.handle(),
                      launch);
  };
  ENGRAM_RETURN_IF_ERROR(watch.Microseconds(stream, run).status());  // warm-up
  std::vector<double> samples;
  const auto end =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(plan.budget);
  while (samples.size() < plan.samples &&
         (samples.size() < kFewestSamples ||
          std::chrono::steady_clock::now() < end)) {
    ENGRAM_ASSIGN_OR_RETURN(const double us, watch.Microseconds(stream, run));
    samples.push_back(us / static_cast<double>(timed.launches_a_sample));
  }
  timed.launch_us = Summarize(std::move(samples));
  return timed;
}

Figure FigureOf(absl::string_view name, const Timed& timed, double useful,
                absl::string_view unit, absl::string_view ceiling) {
  Figure figure;
  figure.name = std::string(name);
  figure.time_us = timed.launch_us;
  figure.launches_a_sample = timed.launches_a_sample;
  figure.useful = useful;
  figure.unit = std::string(unit);
  figure.ceiling = std::string(ceiling);
  return figure;
}

}  // namespace engram::gpu_check

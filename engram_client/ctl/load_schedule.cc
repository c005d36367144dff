#include "engram_client/ctl/load_schedule.h"

#include <cmath>

#include "core/base/check.h"

namespace engram::ctl {
namespace {

uint64_t WeightSum(const std::vector<LoadSize>& sizes) {
  uint64_t sum = 0;
  for (const LoadSize& size : sizes) sum += size.weight;
  return sum;
}

}  // namespace

LoadSchedule::LoadSchedule(const Options& options)
    : options_(options),
      weight_sum_(WeightSum(options.sizes)),
      random_(options.seed) {
  ENGRAM_CHECK(options.calls_per_second > 0 && weight_sum_ > 0);
}

std::optional<LoadCall> LoadSchedule::Next() {
  LoadCall call;
  call.when = NextTime();
  if (call.when >= options_.end) return std::nullopt;
  call.size_index = DrawSize();
  call.seed = random_.Next();
  return call;
}

absl::Duration LoadSchedule::NextTime() {
  if (options_.arrivals == Arrivals::kEven) {
    // Not a sum of gaps, whose rounding would add up.
    return absl::Seconds(static_cast<double>(calls_++) /
                         options_.calls_per_second);
  }
  seconds_ += -std::log1p(-random_.Unit()) / options_.calls_per_second;
  return absl::Seconds(seconds_);
}

size_t LoadSchedule::DrawSize() {
  uint64_t at = random_.Below(weight_sum_);
  size_t index = 0;
  while (at >= options_.sizes[index].weight) {
    at -= options_.sizes[index++].weight;
  }
  return index;
}

}  // namespace engram::ctl

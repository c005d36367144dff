#include "engram_client/ctl/rate_meter.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);
constexpr size_t kMaxLooks = 1000;

}  // namespace

void RateMeter::Add(absl::Time now, uint64_t count) {
  if (!looks_.empty() && count < looks_.back().second) looks_.clear();
  looks_.emplace_back(now, count);
  while (looks_.size() > kMaxLooks || looks_.front().first < now - kWindow) {
    looks_.pop_front();
  }
}

std::optional<double> RateMeter::per_second() const {
  if (looks_.size() < 2) return std::nullopt;
  const double seconds =
      absl::ToDoubleSeconds(looks_.back().first - looks_.front().first);
  if (seconds <= 0) return std::nullopt;
  return static_cast<double>(looks_.back().second - looks_.front().second) /
         seconds;
}

std::optional<absl::Duration> RateMeter::TimeFor(uint64_t more) const {
  const std::optional<double> rate = per_second();
  if (!rate.has_value() || *rate <= 0) return std::nullopt;
  return absl::Seconds(static_cast<double>(more) / *rate);
}

}  // namespace engram::ctl

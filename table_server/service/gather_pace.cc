#include "table_server/service/gather_pace.h"

#include <algorithm>

namespace engram {
namespace {

constexpr double kFall = 1.0 / 8;
constexpr double kRise = 1.0 / 16;

}  // namespace

void GatherPace::Took(uint64_t bytes, uint64_t in_flight_bytes,
                      absl::Duration time) {
  const double ns = absl::ToDoubleNanoseconds(time);
  if (bytes == 0 || ns <= 0) return;
  const double now = ns / Share(bytes, in_flight_bytes);
  if (ns_per_byte_ == 0) ns_per_byte_ = now;
  ns_per_byte_ += (now - ns_per_byte_) * (now < ns_per_byte_ ? kFall : kRise);
}

absl::Duration GatherPace::Expected(uint64_t bytes,
                                    uint64_t in_flight_bytes) const {
  return absl::Nanoseconds(ns_per_byte_ * Share(bytes, in_flight_bytes));
}

double GatherPace::Share(uint64_t bytes, uint64_t in_flight_bytes) const {
  const auto threads = static_cast<double>(std::max<size_t>(1, threads_));
  return std::max(static_cast<double>(bytes),
                  static_cast<double>(in_flight_bytes) / threads);
}

}  // namespace engram

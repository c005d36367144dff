#include "core/base/clock.h"

#include <chrono>

namespace engram {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override {
    return began_ + absl::FromChrono(std::chrono::steady_clock::now() - start_);
  }

 private:
  const absl::Time began_ = absl::Now();
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock* const clock = new RealClock;
  return *clock;
}

const Clock& Clock::Steady() {
  static const SteadyClock* const clock = new SteadyClock;
  return *clock;
}

}  // namespace engram

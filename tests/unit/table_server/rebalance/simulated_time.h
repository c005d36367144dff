#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_TIME_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_TIME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace engram::test {

// Numbers of a seed.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  size_t Below(size_t bound) { return engine_() % bound; }
  bool Chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least +
           (most - least) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  absl::Duration UpTo(absl::Duration most) {
    return Between(absl::ZeroDuration(), most);
  }

 private:
  std::mt19937_64 engine_;
};

// Events in the order of their times; those of one time in the order in which
// they were asked for.
class SimulatedTime {
 public:
  absl::Time now() const { return now_; }

  void After(absl::Duration delay, std::function<void()> event) {
    events_.push_back({now_ + delay, next_number_++, std::move(event)});
    std::push_heap(events_.begin(), events_.end());
  }

  // Until `done`, which is asked before each event; false: not within `limit`.
  bool Run(absl::Duration limit, absl::FunctionRef<bool()> done) {
    const absl::Time end = now_ + limit;
    while (!done()) {
      if (events_.empty() || events_.front().at > end) {
        now_ = end;
        return false;
      }
      std::pop_heap(events_.begin(), events_.end());
      const Event event = std::move(events_.back());
      events_.pop_back();
      now_ = event.at;
      event.happen();
    }
    return true;
  }

 private:
  struct Event {
    absl::Time at;
    uint64_t number;
    std::function<void()> happen;

    bool operator<(const Event& other) const {  // the next one is the largest
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_number_ = 0;
  std::vector<Event> events_;  // a heap
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SIMULATED_TIME_H_

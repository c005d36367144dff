#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RANDOM_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RANDOM_H_

#include <cstdint>

namespace engram::ctl {

// splitmix64: the state goes up by a constant, an output is a hash of it. One
// number a nanosecond, the same on every machine, and any seed is a good one.
class LoadRandom {
 public:
  explicit LoadRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  // Of [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // Of [0, bound), each with a probability that is off by less than
  // bound / 2^64 of itself. REQUIRES: bound >= 1.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_RANDOM_H_

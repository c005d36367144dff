#ifndef ENGRAM_TESTS_UNIT_COMPUTE_GATE_CANCELLING_VALUES_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_GATE_CANCELLING_VALUES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace engram {

// Values that bf16 holds and whose sum is 0. What double precision makes of
// it, and its sign, is the order of the sums and nothing else: with keys and
// weights of 1 the gate shows it, which otherwise hides in the rounding.
inline std::vector<float> CancellingValues(size_t count,
                                           std::mt19937_64* random) {
  std::vector<float> values(count, 0);
  for (size_t i = 0; i + 1 < count; i += 2) {
    const float mantissa = 1 + static_cast<float>((*random)() % 128) / 128;
    values[i] = std::ldexp(mantissa, static_cast<int>((*random)() % 75));
    values[i + 1] = -values[i];
  }
  std::shuffle(values.begin(), values.end(), *random);
  return values;
}

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_GATE_CANCELLING_VALUES_H_

#ifndef ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_TEST_WEIGHTS_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_TEST_WEIGHTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "compute/project/projection_weights.h"
#include "core/model/number_formats.h"

namespace engram::test {

// A projection's weights, and its product in double precision.
struct TestWeights {
  TestWeights(uint32_t in, uint32_t out, uint32_t seed) : in(in), out(out) {
    std::mt19937 random(seed);
    codes.resize(size_t{in} * out);
    for (uint8_t& code : codes) {
      code = static_cast<uint8_t>(random());
      if ((code & 0x7F) == 0x7F) code ^= 8;
    }
    scales.resize(size_t{(out + 31) / 32} * (in / 32));
    for (uint8_t& scale : scales) scale = 114 + random() % 4;
  }

  ProjectionWeights View() const { return {in, out, codes, scales}; }

  float Weight(size_t n, size_t k) const {
    return E4m3ToFloat(codes[n * in + k]) *
           E8m0ToFloat(scales[n / 32 * (in / 32) + k / 32]);
  }

  // The product, and the sum of its terms' magnitudes.
  std::pair<double, double> Product(const float* row, size_t n) const {
    double sum = 0;
    double magnitude = 0;
    for (size_t k = 0; k < in; ++k) {
      const double term = double{row[k]} * Weight(n, k);
      sum += term;
      magnitude += std::fabs(term);
    }
    return {sum, magnitude};
  }

  uint32_t in;
  uint32_t out;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
};

// Values as decoded rows have them, exact in bf16: [tokens, in].
inline std::vector<float> RandomRows(size_t tokens, size_t in, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> rows(tokens * in);
  for (float& value : rows) {
    auto code = static_cast<uint8_t>(random());
    if ((code & 0x7F) == 0x7F) code ^= 8;
    value = E4m3ToFloat(code) * E8m0ToFloat(113 + random() % 7);
  }
  return rows;
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_TEST_WEIGHTS_H_

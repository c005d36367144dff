#ifndef ENGRAM_COMPUTE_GATE_GATE_CORE_H_
#define ENGRAM_COMPUTE_GATE_GATE_CORE_H_

#include <cmath>
#include <cstdint>

#include "core/model/number_formats.h"

// The arithmetic of the gate, for the CPU and, compiled by nvcc, for the GPU.
// Needs -ffp-contract=off and --fmad=false: products round before they are
// added.

namespace engram {

// Feature i of a stream is summed in partial sum i % kGateSums, in order of i,
// and the partial sums by AddNeighbours. A thread of the GPU that takes 2, 4 or
// 8 neighbouring features at a time, and a warp of such threads, each own a
// subtree of that order: they need not agree on how many a thread takes.
inline constexpr uint32_t kGateSums = 256;

// The three sums over the features of one stream of one token.
struct GateSums {
  double stream_square = 0;
  double key_square = 0;
  double dot = 0;
};

// A float32 product of two equal floats would round; this one is exact.
ENGRAM_HOST_DEVICE inline double GateSquare(float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

// Rounds to float32 after each product, in this order.
ENGRAM_HOST_DEVICE inline double GateDotTerm(float stream, float weight,
                                             float key) {
  const float weighted = stream * weight;
  return static_cast<double>(weighted * key);
}

// Adds sums 2j and 2j + 1, their sums in the same way, and so on.
template <uint32_t kCount>
ENGRAM_HOST_DEVICE inline double AddNeighbours(const double* sums) {
  static_assert(kCount > 0 && (kCount & (kCount - 1)) == 0);
  if constexpr (kCount == 1) {
    return sums[0];
  } else {
    double pairs[kCount / 2];
    for (uint32_t j = 0; j < kCount / 2; ++j) {
      pairs[j] = sums[2 * j] + sums[2 * j + 1];
    }
    return AddNeighbours<kCount / 2>(pairs);
  }
}

// 1 / sqrt(mean + eps). With V4.1's eps of 1e-20 (a normal float32) a stream
// of zeros gives 1e10, not infinity, so that its dot stays 0 and not NaN.
ENGRAM_HOST_DEVICE inline float InverseRms(double square_sum, uint32_t dim,
                                           float norm_eps) {
  const auto mean = static_cast<float>(square_sum / dim);
  return 1.0F / sqrtf(mean + norm_eps);
}

// fl32(dim^-0.5), for GateFromSums.
inline float InverseSqrtDim(uint32_t dim) {
  return static_cast<float>(std::pow(static_cast<double>(dim), -0.5));
}

// The bits of the GPU differ from the CPU's only if their exp() of a double,
// each within about one ulp, fall on different sides of a rounding to float32:
// about once in 2^28 gates.
ENGRAM_HOST_DEVICE inline float GateFromSums(const GateSums& sums, uint32_t dim,
                                             float norm_eps,
                                             float inverse_sqrt_dim) {
  const float rstd = InverseRms(sums.stream_square, dim, norm_eps) *
                     InverseRms(sums.key_square, dim, norm_eps);
  const float dot = static_cast<float>(sums.dot) * rstd * inverse_sqrt_dim;
  const float magnitude = fabsf(dot) < 1e-6F ? 1e-6F : fabsf(dot);
  const float root = copysignf(sqrtf(magnitude), dot);
  return static_cast<float>(1.0 / (1.0 + exp(-static_cast<double>(root))));
}

// The product rounds before the sum, so that a caller who gets gate and value
// and adds them itself has the same bits.
ENGRAM_HOST_DEVICE inline float AddGated(float stream, float gate,
                                         float value) {
  const float product = gate * value;
  return stream + product;
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_CORE_H_

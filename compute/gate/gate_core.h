#ifndef ENGRAM_COMPUTE_GATE_GATE_CORE_H_
#define ENGRAM_COMPUTE_GATE_GATE_CORE_H_

#include <cmath>
#include <cstdint>

#include "core/model/number_formats.h"

// The arithmetic of the gate, for the CPU and, compiled by nvcc, for the GPU.
// Needs -ffp-contract=off and --fmad=false: products round before they are
// added.

namespace engram {

// Feature i of a stream is summed in lane i % kGateLanes, and the lanes by
// SumLanes: the order in which one warp sums, on the CPU too.
inline constexpr uint32_t kGateLanes = 32;

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

// Adds lane l + 16 to l, then l + 8, ... as __shfl_down_sync does. Destroys
// `lanes`.
ENGRAM_HOST_DEVICE inline double SumLanes(double* lanes) {
  for (uint32_t half = kGateLanes / 2; half > 0; half /= 2) {
    for (uint32_t lane = 0; lane < half; ++lane) {
      lanes[lane] = lanes[lane] + lanes[lane + half];
    }
  }
  return lanes[0];
}

// 1 / sqrt(mean + eps). With V4.1's eps of 1e-20 (a normal float32) a stream
// of zeros gives 1e10, not infinity, so that its dot stays 0 and not NaN.
ENGRAM_HOST_DEVICE inline float InverseRms(double square_sum, uint32_t dim,
                                           float norm_eps) {
  const auto mean = static_cast<float>(square_sum / dim);
  return 1.0F / sqrtf(mean + norm_eps);
}

// `inverse_sqrt_dim` is fl32(dim^-0.5).
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

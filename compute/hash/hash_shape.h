#ifndef ENGRAM_COMPUTE_HASH_HASH_SHAPE_H_
#define ENGRAM_COMPUTE_HASH_HASH_SHAPE_H_

#include <cstdint>

#include "core/gpu/gpu_types.h"

namespace engram {

inline constexpr uint32_t kHashThreads = 256;

// A warp for each token. REQUIRES: token_count > 0.
LaunchShape HashShape(uint32_t token_count);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_HASH_SHAPE_H_

#include "compute/hash/hash_shape.h"

#include <cstdint>

#include "core/base/check.h"

namespace engram {

LaunchShape HashShape(uint32_t token_count) {
  ENGRAM_CHECK(token_count > 0);
  constexpr uint32_t kWarps = kHashThreads / 32;
  LaunchShape shape;
  shape.grid_x = (token_count - 1) / kWarps + 1;
  shape.block_x = kHashThreads;
  return shape;
}

}  // namespace engram

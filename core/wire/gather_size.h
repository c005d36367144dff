#ifndef ENGRAM_CORE_WIRE_GATHER_SIZE_H_
#define ENGRAM_CORE_WIRE_GATHER_SIZE_H_

#include <cstdint>

namespace engram {

// Gathers of at most this many bytes of rows are of decode size (some 2,000
// rows of V4.1: a batch of 40 tokens in both layers). Clients and servers keep
// larger ones out of their way.
inline constexpr uint64_t kSmallGatherBytes = 512 << 10;

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_GATHER_SIZE_H_

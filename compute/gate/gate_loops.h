#ifndef ENGRAM_COMPUTE_GATE_GATE_LOOPS_H_
#define ENGRAM_COMPUTE_GATE_GATE_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "compute/gate/gate_core.h"
#include "compute/gate/stream_dtype.h"

namespace engram {

// The gate's loops over the `dim` features of one stream of one token, with
// the widest vectors that the CPU has; the bits do not depend on them. Streams
// are bytes because they come from message buffers of any alignment.

GateSums SumStream(StreamDtype dtype, const std::byte* stream,
                   const float* weight, const uint16_t* key, size_t dim);

// `out` may be `stream`.
void AddStream(StreamDtype dtype, const std::byte* stream, float gate,
               const uint16_t* value, size_t dim, std::byte* out);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_LOOPS_H_

#ifndef ENGRAM_COMPUTE_GATE_STREAM_DTYPE_H_
#define ENGRAM_COMPUTE_GATE_STREAM_DTYPE_H_

#include <cstddef>

namespace engram {

enum class StreamDtype { kBf16, kF32 };

constexpr size_t StreamBytes(StreamDtype dtype) {
  return dtype == StreamDtype::kBf16 ? 2 : 4;
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_STREAM_DTYPE_H_

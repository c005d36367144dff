#ifndef ENGRAM_COMPUTE_GATE_GATE_SHAPE_H_
#define ENGRAM_COMPUTE_GATE_GATE_SHAPE_H_

#include <cstdint>

#include "compute/gate/gate_args.h"
#include "compute/gate/gate_core.h"
#include "core/gpu/gpu_types.h"
#include "core/model/number_formats.h"

// How tokens and features are dealt out to blocks and threads.
//
// A thread takes `width` neighbouring features of every 256, so that 256 /
// width threads share one stream of one token, and each of them owns a subtree
// of the order of sums (gate_core.h). A block takes two streams of a token
// where it can: they read the same value.

namespace engram {

// Of a stream: shared memory holds 4 bytes for each.
inline constexpr uint32_t kMaxGateDim = 51'200;

// The words that a thread asks for at a time are then all there or all not.
inline constexpr uint32_t kGateWholeFeatures = 5120;

struct GateShape {
  LaunchShape launch;
  uint32_t width = 0;       // 4, 2 or 1
  bool is_whole = false;    // dim is a multiple of kGateWholeFeatures
  uint32_t kept_bytes = 0;  // shared memory for one stream
};

// Threads that share a stream.
ENGRAM_HOST_DEVICE constexpr uint32_t GateStreamThreads(uint32_t width) {
  return kGateSums / width;
}

// Threads of a block, at most.
ENGRAM_HOST_DEVICE constexpr uint32_t GateBlockThreads(uint32_t width) {
  return width == 1 ? 256 : 128;
}

// Blocks of that size that an SM must have room for, which bounds a thread's
// registers. The most that leave it those it needs.
ENGRAM_HOST_DEVICE constexpr uint32_t GateBlocksPerSm(uint32_t width,
                                                      uint32_t feature_bytes,
                                                      bool is_whole) {
  if (width != 4) return 2;
  if (feature_bytes == 4) return is_whole ? 3 : 2;
  return is_whole ? 5 : 4;
}

// Words of `width` features of stream and of key that a thread asks for at a
// time. With a width of 2, for few tokens, it is all that it needs of V4.1.
ENGRAM_HOST_DEVICE constexpr uint32_t GateKeyWords(uint32_t width) {
  return width == 2 ? 20 : 10;
}

// The same of the value.
inline constexpr uint32_t kGateValueWords = 20;

// Shared memory in which a stream's warps put their three sums and then find
// the gate, as doubles. A multiple of 16.
ENGRAM_HOST_DEVICE constexpr uint32_t GateReduceBytes(uint32_t width) {
  return (GateStreamThreads(width) / 32 * 3 + 1 + 1) / 2 * 16;
}

// Blocks that the launch would have; a grid has fewer than 2^31.
uint64_t GateBlockCount(const GateArgs& args);

// REQUIRES: 0 < GateBlockCount(args) < 2^31, 0 < dim <= kMaxGateDim.
GateShape MakeGateShape(const GateArgs& args);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_SHAPE_H_

#include "compute/gate/gate_shape.h"

#include <cstdint>

#include "compute/gate/gate_args.h"
#include "core/base/check.h"

namespace engram {
namespace {

// Up to here the device has room for more threads than tokens ask for.
constexpr uint32_t kFewTokens = 64;

// Of a block, so that several fit on an SM.
constexpr uint32_t kManySharedBytes = 48 << 10;

bool IsAligned(const void* pointer, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

bool CanRead(const GateArgs& args, uint32_t width) {
  const uint64_t stream = uint64_t{width} * StreamBytes(args.dtype);
  const uint64_t key = uint64_t{width} * sizeof(*args.kv);
  return args.dim % width == 0 && IsAligned(args.streams, stream) &&
         IsAligned(args.out_streams, stream) && IsAligned(args.kv, key) &&
         IsAligned(args.out_value, key) &&
         IsAligned(args.weight, width * sizeof(*args.weight));
}

bool IsWhole(const GateArgs& args) {
  return args.dim % kGateWholeFeatures == 0;
}

uint32_t Width(const GateArgs& args) {
  if (!CanRead(args, 4)) return 1;
  return args.token_count <= kFewTokens && IsWhole(args) ? 2 : 4;
}

uint32_t KeptBytes(const GateArgs& args, uint32_t width) {
  const uint32_t group = GateKeyWords(width) * kGateSums;
  return (args.dim + group - 1) / group * group *
         static_cast<uint32_t>(StreamBytes(args.dtype));
}

uint32_t StreamSharedBytes(const GateArgs& args, uint32_t width) {
  return GateReduceBytes(width) + KeptBytes(args, width);
}

uint32_t StreamsPerBlock(const GateArgs& args, uint32_t width) {
  const bool two = args.token_count > kFewTokens && args.hc_mult % 2 == 0 &&
                   2 * GateStreamThreads(width) <= GateBlockThreads(width) &&
                   2 * StreamSharedBytes(args, width) <= kManySharedBytes;
  return two ? 2 : 1;
}

}  // namespace

uint64_t GateBlockCount(const GateArgs& args) {
  return uint64_t{args.token_count} * args.hc_mult /
         StreamsPerBlock(args, Width(args));
}

GateShape MakeGateShape(const GateArgs& args) {
  const uint64_t blocks = GateBlockCount(args);
  ENGRAM_CHECK(blocks > 0 && blocks < uint64_t{1} << 31);
  ENGRAM_CHECK(args.dim > 0 && args.dim <= kMaxGateDim);
  GateShape shape;
  shape.width = Width(args);
  shape.is_whole = shape.width != 1 && IsWhole(args);
  shape.kept_bytes = KeptBytes(args, shape.width);
  const uint32_t streams = StreamsPerBlock(args, shape.width);
  shape.launch.grid_x = static_cast<uint32_t>(blocks);
  shape.launch.block_x = streams * GateStreamThreads(shape.width);
  shape.launch.shared_bytes = streams * StreamSharedBytes(args, shape.width);
  return shape;
}

}  // namespace engram

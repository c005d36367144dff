#ifndef ENGRAM_COMPUTE_GATE_GPU_GATE_H_
#define ENGRAM_COMPUTE_GATE_GPU_GATE_H_

#include "absl/status/status.h"
#include "compute/gate/gate_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts ComputeGate and AddContribution of gate.h on the stream, in one pass:
// the same bits, but for the gate's last one about once in 2^28 gates, where
// the device's exp() rounds to the other side (gate_core.h), and for the bits
// of a NaN. Dead tokens: streams as they are, gate and value +0.
//
// What the arguments point to must stay as it is until the stream is past it.
// Rows of kv that live_index names must be there; nobody checks. Pointers need
// the alignment of their type; 16 bytes and a dim that 4 divides are fastest.
//
// Thread safety: may be called concurrently. INVALID_ARGUMENT, and nothing is
// put on the stream: no streams, a dim of 0 or above kMaxGateDim, 2^31 blocks
// or more. INTERNAL: the launch failed.
absl::Status GateOnGpu(const GateArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GPU_GATE_H_

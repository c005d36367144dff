#ifndef ENGRAM_COMPUTE_GATE_GATE_LAUNCH_H_
#define ENGRAM_COMPUTE_GATE_GATE_LAUNCH_H_

#include "compute/gate/gate_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts gate and add on the stream and returns the launch's cudaError_t. Checks
// nothing: gpu_gate.h does.
int LaunchGate(const GateArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_LAUNCH_H_

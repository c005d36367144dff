#ifndef ENGRAM_COMPUTE_DEQUANT_DECODE_LAUNCH_H_
#define ENGRAM_COMPUTE_DEQUANT_DECODE_LAUNCH_H_

#include "compute/dequant/decode_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts the decoding on the stream and returns the launch's cudaError_t. Checks
// nothing: gpu_decode.h does.
int LaunchDecode(const DecodeArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_DECODE_LAUNCH_H_

#ifndef ENGRAM_COMPUTE_HASH_HASH_LAUNCH_H_
#define ENGRAM_COMPUTE_HASH_HASH_LAUNCH_H_

#include "compute/hash/hash_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts the hash of all layers on the stream and returns the launch's
// cudaError_t. Checks nothing: gpu_hasher.h does.
int LaunchHash(const HashArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_HASH_LAUNCH_H_

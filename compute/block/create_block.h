#ifndef ENGRAM_COMPUTE_BLOCK_CREATE_BLOCK_H_
#define ENGRAM_COMPUTE_BLOCK_CREATE_BLOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compute/block/device_choice.h"
#include "compute/block/engram_block.h"
#include "compute/project/projection_mode.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/token_map.h"

namespace engram {

struct BlockRequest {
  DeviceRequest device;
  ProjectionMode projection = ProjectionMode::kInvariant;
};

struct ChosenBlock {
  std::unique_ptr<const EngramBlock> block;
  DeviceChoice device;
};

// The block of the device that `request` asks for and this machine has. With
// DeviceRequest::kAuto a GPU that cannot be used gives way to the CPU, and
// `device.reason` says why; with kCuda that is an error. `pool` outlives the
// block.
absl::StatusOr<ChosenBlock> CreateEngramBlock(const Checkpoint& checkpoint,
                                              const TokenMap& token_map,
                                              ThreadPool* pool,
                                              const BlockRequest& request);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_CREATE_BLOCK_H_

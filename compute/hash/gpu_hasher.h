#ifndef ENGRAM_COMPUTE_HASH_GPU_HASHER_H_
#define ENGRAM_COMPUTE_HASH_GPU_HASHER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/hash/hash_args.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_types.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/token_map.h"

namespace engram {

// NgramHasher on the device: the same row ids, of all layers in one launch,
// from ids that are on the device already. Holds the token map and the layers'
// constants on the device that is selected when it is made.
//
// Immutable. Thread safety: all methods may be called concurrently.
class GpuHasher {
 public:
  // INVALID_ARGUMENT: a token map of another vocabulary. RESOURCE_EXHAUSTED:
  // no device memory.
  static absl::StatusOr<GpuHasher> Create(const EngramConfig& config,
                                          const EngramLayout& layout,
                                          const TokenMap& token_map);

  // Puts the hash on the stream. What `batch` points to must stay as it is
  // until the stream is past it, and first_bad must be read then: ids are
  // checked on the device. INTERNAL: the launch failed.
  absl::Status Hash(const HashBatch& batch, GpuStreamHandle stream) const;

 private:
  GpuHasher() = default;

  DeviceBuffer token_map_;
  DeviceBuffer multipliers_;
  DeviceBuffer columns_;
  HashModel model_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_GPU_HASHER_H_

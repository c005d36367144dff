#include "compute/hash/gpu_hasher.h"

#include <cstdint>

#include "absl/types/span.h"
#include "compute/hash/hash_constants.h"
#include "compute/hash/hash_launch.h"
#include "compute/hash/ngram_hash.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_status.h"

namespace engram {

absl::StatusOr<GpuHasher> GpuHasher::Create(const EngramConfig& config,
                                            const EngramLayout& layout,
                                            const TokenMap& token_map) {
  ENGRAM_RETURN_IF_ERROR(CheckTokenMap(token_map, config));
  const HashConstants constants = MakeHashConstants(config, layout);
  GpuHasher hasher;
  ENGRAM_ASSIGN_OR_RETURN(hasher.token_map_,
                          DeviceBuffer::UploadArray(token_map.ids()));
  ENGRAM_ASSIGN_OR_RETURN(
      hasher.multipliers_,
      DeviceBuffer::UploadArray(absl::MakeConstSpan(constants.multipliers)));
  ENGRAM_ASSIGN_OR_RETURN(
      hasher.columns_,
      DeviceBuffer::UploadArray(absl::MakeConstSpan(constants.columns)));
  HashModel& model = hasher.model_;
  model.token_map = hasher.token_map_.as<uint32_t>();
  model.multipliers = hasher.multipliers_.as<uint64_t>();
  model.columns = hasher.columns_.as<HashColumn>();
  model.vocab_size = config.vocab_size;
  model.pad = static_cast<uint32_t>(token_map.pad());
  model.layer_count = static_cast<uint32_t>(layout.layers().size());
  model.max_ngram_size = config.max_ngram_size;
  model.column_count = config.columns();
  return hasher;
}

absl::Status GpuHasher::Hash(const HashBatch& batch,
                             GpuStreamHandle stream) const {
  ENGRAM_RETURN_IF_GPU_ERROR(LaunchHash({model_, batch}, stream),
                             "launch of the hash");
  return absl::OkStatus();
}

}  // namespace engram

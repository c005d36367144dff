#ifndef ENGRAM_ENGRAM_CLIENT_CTL_CHECKPOINT_WRITER_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_CHECKPOINT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/thread_pool.h"
#include "engram_client/ctl/made_up_checkpoint.h"

namespace engram::ctl {

// What a made-up checkpoint takes on disk.
struct CheckpointSize {
  uint64_t rows = 0;         // of all layers
  uint64_t table_bytes = 0;  // codes and scales
  uint64_t wkv_bytes = 0;    // weights and scales
  uint64_t other_bytes = 0;  // norm weights, token map, headers (rounded up)
  uint64_t total() const { return table_bytes + wkv_bytes + other_bytes; }
};
CheckpointSize SizeOf(const MadeUpModel& model);

struct WriteHooks {
  absl::FunctionRef<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
  absl::FunctionRef<bool()> interrupted;  // asked every few MiB
};

// Writes config.json, engram_token_map.bin, one safetensors file a layer and
// their index into `directory`. The next piece is computed on `pool` while
// this thread writes one, so that the disk never waits. CANCELLED: interrupted.
// On an error files may be left in `directory`.
absl::Status WriteCheckpoint(const MadeUpModel& model,
                             const std::string& directory, ThreadPool& pool,
                             const WriteHooks& hooks);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_CHECKPOINT_WRITER_H_

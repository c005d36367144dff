#ifndef ENGRAM_CORE_GPU_GPU_GATHER_H_
#define ENGRAM_CORE_GPU_GPU_GATHER_H_

#include "absl/status/status.h"
#include "core/gpu/gather_rows_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts a gather on the stream: row row_ids[i] goes to slot i of `out`. What
// the arguments point to must stay as it is until the stream is past it, and
// first_bad must be read then: ids are checked on the device, never followed
// out of the table.
//
// Thread safety: may be called concurrently. INVALID_ARGUMENT, and nothing is
// put on the stream: a row of 0 bytes or above kMaxGatherRowBytes, partitions
// that do not hold row_count rows, 2^32 rows or more in a gather, `out` not
// aligned to kGatherAlignment. INTERNAL: the launch failed.
absl::Status GatherRowsOnGpu(const GatherRowsArgs& args,
                             GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GPU_GATHER_H_

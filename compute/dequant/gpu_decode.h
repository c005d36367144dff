#ifndef ENGRAM_COMPUTE_DEQUANT_GPU_DECODE_H_
#define ENGRAM_COMPUTE_DEQUANT_GPU_DECODE_H_

#include "absl/status/status.h"
#include "compute/dequant/decode_args.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts DecodeRowsForProjection of dequant.h on the stream: the same values, as
// bf16, which holds them exactly. A NaN's bits may differ.
//
// What the arguments point to must stay as it is until the stream is past it.
// Rows that are aligned to 8 bytes, with scales for 32 values or a power of
// two above, to an output aligned to 16 are fast; the rest is right.
//
// Thread safety: may be called concurrently. INVALID_ARGUMENT, and nothing is
// put on the stream: no columns, a block size that does not divide the width,
// values of a token that 32 does not divide or more than kMaxDecodeValues,
// 2^31 blocks or more. INTERNAL:
// the launch failed.
absl::Status DecodeOnGpu(const DecodeArgs& args, GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_DEQUANT_GPU_DECODE_H_

#include "compute/dequant/gpu_decode.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compute/dequant/decode_core.h"
#include "compute/dequant/decode_launch.h"
#include "compute/dequant/decode_shape.h"
#include "core/base/check.h"
#include "core/gpu/gpu_status.h"

namespace engram {

absl::Status DecodeOnGpu(const DecodeArgs& args, GpuStreamHandle stream) {
  if (args.block_size == 0 || args.width == 0 ||
      args.width % args.block_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("decoding rows of ", args.width, " values in blocks of ",
                     args.block_size));
  }
  const uint64_t in = uint64_t{args.columns} * args.width;
  if (in == 0 || in % kQuantBlock != 0 || in > kMaxDecodeValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("decoding ", in, " values a token, must be a multiple of ",
                     kQuantBlock, " up to ", kMaxDecodeValues));
  }
  if (args.token_count == 0) return absl::OkStatus();
  if (const uint64_t blocks = DecodeBlockCount(args);
      blocks >= uint64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat("decoding ", args.token_count, " tokens of ", in,
                     " values: ", blocks, " blocks, must be below 2^31"));
  }
  ENGRAM_CHECK(args.rows != nullptr && args.out != nullptr);
  ENGRAM_RETURN_IF_GPU_ERROR(LaunchDecode(args, stream),
                             "launch of the decoding");
  return absl::OkStatus();
}

}  // namespace engram

#include "core/gpu/gpu_gather.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/gpu/gather_rows_launch.h"
#include "core/gpu/gpu_status.h"

namespace engram {
namespace {

absl::Status CheckTable(const GpuRowTable& table) {
  if (table.row_bytes == 0 || table.row_bytes > kMaxGatherRowBytes) {
    return absl::InvalidArgumentError(absl::StrCat("rows of ", table.row_bytes,
                                                   " bytes, must be 1 to ",
                                                   kMaxGatherRowBytes));
  }
  if (table.partition_rows_log2 > 31) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partitions of 2^", table.partition_rows_log2, " rows, at most 2^31"));
  }
  const uint64_t room = uint64_t{table.partition_count}
                        << table.partition_rows_log2;
  if (table.row_count > room) {
    return absl::InvalidArgumentError(
        absl::StrCat(table.row_count, " rows in partitions for ", room));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GatherRowsOnGpu(const GatherRowsArgs& args,
                             GpuStreamHandle stream) {
  ENGRAM_RETURN_IF_ERROR(CheckTable(args.table));
  if (args.count >= uint64_t{1} << 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("gather of ", args.count, " rows, must be below 2^32"));
  }
  if (reinterpret_cast<uintptr_t>(args.out) % kGatherAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gather to an address that is not aligned to ", kGatherAlignment));
  }
  ENGRAM_RETURN_IF_GPU_ERROR(LaunchGatherRows(args, stream),
                             "launch of the gather");
  return absl::OkStatus();
}

}  // namespace engram

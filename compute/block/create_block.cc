#include "compute/block/create_block.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compute/block/gpu_block.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_device.h"

namespace engram {
namespace {

// Machines without a GPU are not asked for one where none is wanted: that
// alone would start CUDA on those that have one.
absl::StatusOr<std::vector<GpuDevice>> FindGpus(const DeviceRequest& request) {
  if (request.kind == DeviceRequest::Kind::kCpu) {
    return absl::NotFoundError("not looked for");
  }
  return ListGpuDevices();
}

}  // namespace

absl::StatusOr<ChosenBlock> CreateEngramBlock(const Checkpoint& checkpoint,
                                              const TokenMap& token_map,
                                              ThreadPool* pool,
                                              const BlockRequest& request) {
  GpuBlockOptions options = {.projection = request.projection, .pool = pool};
  ChosenBlock chosen;
  ENGRAM_ASSIGN_OR_RETURN(
      chosen.device,
      ChooseDevice(request.device, FindGpus(request.device),
                   GpuBlockBytes(checkpoint.config(), checkpoint.row_format(),
                                 options)));
  if (chosen.device.gpu.has_value()) {
    options.device = chosen.device.gpu->index;
    auto block = CreateGpuEngramBlock(checkpoint, token_map, options);
    if (block.ok()) {
      chosen.block = *std::move(block);
      return chosen;
    }
    const absl::Status status =
        Annotate(block.status(), absl::StrCat("device ", chosen.device.Name()));
    if (request.device.kind != DeviceRequest::Kind::kAuto) return status;
    chosen.device = {std::nullopt, std::string(status.message())};
  }
  ENGRAM_ASSIGN_OR_RETURN(chosen.block,
                          EngramBlock::Create(checkpoint, token_map, pool));
  return chosen;
}

}  // namespace engram

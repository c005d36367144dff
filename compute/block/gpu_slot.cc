#include "compute/block/gpu_slot.h"

#include <cuda_runtime_api.h>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_status.h"

namespace engram {
namespace {

// A step of decode takes some 100 us: as long as that the thread does not
// sleep, for it would wake too late.
constexpr absl::Duration kSpin = absl::Microseconds(300);

absl::StatusOr<DeviceBuffer> AllocateZeroed(size_t size_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                          DeviceBuffer::Allocate(size_bytes));
  ENGRAM_RETURN_IF_GPU_ERROR(cudaMemset(buffer.data(), 0, size_bytes),
                             "clearing a buffer");
  return buffer;
}

absl::Status AllocateOnHost(GpuSlot& slot) {
  const GpuSlotSizes& sizes = slot.sizes;
  ENGRAM_ASSIGN_OR_RETURN(slot.host_rows, PinnedBuffer::Allocate(sizes.rows));
  ENGRAM_ASSIGN_OR_RETURN(slot.host_streams,
                          PinnedBuffer::Allocate(sizes.streams));
  ENGRAM_ASSIGN_OR_RETURN(slot.host_gate, PinnedBuffer::Allocate(sizes.gate));
  ENGRAM_ASSIGN_OR_RETURN(slot.host_value, PinnedBuffer::Allocate(sizes.value));
  return absl::OkStatus();
}

absl::Status AllocateOnDevice(GpuSlot& slot) {
  const GpuSlotSizes& sizes = slot.sizes;
  ENGRAM_ASSIGN_OR_RETURN(slot.rows, AllocateZeroed(sizes.rows));
  ENGRAM_ASSIGN_OR_RETURN(slot.values, AllocateZeroed(sizes.values));
  ENGRAM_ASSIGN_OR_RETURN(slot.kv, AllocateZeroed(sizes.kv));
  ENGRAM_ASSIGN_OR_RETURN(slot.streams, AllocateZeroed(sizes.streams));
  ENGRAM_ASSIGN_OR_RETURN(slot.gate, AllocateZeroed(sizes.gate));
  ENGRAM_ASSIGN_OR_RETURN(slot.value, AllocateZeroed(sizes.value));
  // The slot's streams do not wait for the default one, which cleared them.
  return GpuStatus(cudaDeviceSynchronize(), "clearing the buffers");
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuSlot>> GpuSlot::Create(
    const GpuSlotSizes& sizes) {
  auto slot = std::make_unique<GpuSlot>();
  slot->sizes = sizes;
  ENGRAM_RETURN_IF_ERROR(AllocateOnHost(*slot));
  ENGRAM_RETURN_IF_ERROR(AllocateOnDevice(*slot));
  ENGRAM_ASSIGN_OR_RETURN(slot->main, GpuStream::Create());
  ENGRAM_ASSIGN_OR_RETURN(slot->side, GpuStream::Create());
  ENGRAM_ASSIGN_OR_RETURN(slot->rows_ready, GpuEvent::Create());
  ENGRAM_ASSIGN_OR_RETURN(slot->done, GpuEvent::Create());
  return slot;
}

absl::Status GpuSlot::AwaitAll(absl::Time deadline) {
  ENGRAM_RETURN_IF_ERROR(rows_ready->Record(*side));
  ENGRAM_RETURN_IF_ERROR(main->Wait(*rows_ready));
  return Await(deadline);
}

absl::Status GpuSlot::Await(absl::Time deadline) {
  ENGRAM_RETURN_IF_ERROR(done->Record(*main));
  const absl::Time spin_until = std::min(absl::Now() + kSpin, deadline);
  while (absl::Now() < spin_until) {
    const absl::Status status = done->WaitUntil(absl::InfinitePast());
    if (!absl::IsDeadlineExceeded(status)) return status;
  }
  return done->WaitUntil(deadline);
}

}  // namespace engram

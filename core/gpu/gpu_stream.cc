#include "core/gpu/gpu_stream.h"

#include <cuda_runtime_api.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/gpu/gpu_status.h"

namespace engram {
namespace {

constexpr absl::Duration kPollPeriod = absl::Microseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<GpuStream>> GpuStream::Create() {
  cudaStream_t handle = nullptr;
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking),
      "creating a stream");
  return absl::WrapUnique(new GpuStream(handle));
}

GpuStream::~GpuStream() {
  cudaStreamSynchronize(handle_);
  cudaStreamDestroy(handle_);
}

absl::Status GpuStream::Wait(const GpuEvent& event) {
  return GpuStatus(cudaStreamWaitEvent(handle_, event.handle(), 0),
                   "waiting for an event");
}

absl::Status GpuStream::Synchronize() {
  return GpuStatus(cudaStreamSynchronize(handle_), "work of a stream");
}

absl::StatusOr<std::unique_ptr<GpuEvent>> GpuEvent::Create() {
  cudaEvent_t handle = nullptr;
  ENGRAM_RETURN_IF_GPU_ERROR(cudaEventCreate(&handle), "creating an event");
  return absl::WrapUnique(new GpuEvent(handle));
}

GpuEvent::~GpuEvent() { cudaEventDestroy(handle_); }

absl::Status GpuEvent::Record(const GpuStream& stream) {
  return GpuStatus(cudaEventRecord(handle_, stream.handle()),
                   "recording an event");
}

absl::Status GpuEvent::WaitUntil(absl::Time deadline) const {
  while (true) {
    const cudaError_t error = cudaEventQuery(handle_);
    if (error != cudaErrorNotReady) return GpuStatus(error, "work of a stream");
    cudaGetLastError();  // kept as an error, which the next launch would find
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          "the device had not done its work by the deadline");
    }
    absl::SleepFor(kPollPeriod);
  }
}

absl::StatusOr<absl::Duration> GpuEvent::Since(const GpuEvent& start) const {
  float milliseconds = 0;
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaEventElapsedTime(&milliseconds, start.handle_, handle_),
      "reading the time between events");
  return absl::Milliseconds(milliseconds);
}

absl::Status CopyToDevice(void* device, const void* host, size_t size_bytes,
                          GpuStreamHandle stream) {
  if (size_bytes == 0) return absl::OkStatus();
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaMemcpyAsync(device, host, size_bytes, cudaMemcpyHostToDevice, stream),
      absl::StrCat("copying ", size_bytes, " bytes to the device"));
  return absl::OkStatus();
}

absl::Status CopyToHost(void* host, const void* device, size_t size_bytes,
                        GpuStreamHandle stream) {
  if (size_bytes == 0) return absl::OkStatus();
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaMemcpyAsync(host, device, size_bytes, cudaMemcpyDeviceToHost, stream),
      absl::StrCat("copying ", size_bytes, " bytes from the device"));
  return absl::OkStatus();
}

}  // namespace engram

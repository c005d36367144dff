#include "core/gpu/gpu_memory.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_status.h"

namespace engram {

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(size_t size_bytes) {
  if (size_bytes == 0) return DeviceBuffer();
  void* data = nullptr;
  if (const cudaError_t error = cudaMalloc(&data, size_bytes);
      error != cudaSuccess) {
    size_t free_bytes = 0;
    size_t all_bytes = 0;
    cudaGetLastError();  // a refused allocation is not an error of what follows
    cudaMemGetInfo(&free_bytes, &all_bytes);
    return GpuStatus(error,
                     absl::StrCat("allocating ", size_bytes,
                                  " bytes on the device, of which ", free_bytes,
                                  " of ", all_bytes, " are free"));
  }
  return DeviceBuffer(static_cast<std::byte*>(data), size_bytes);
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Upload(
    absl::Span<const std::byte> bytes) {
  ENGRAM_ASSIGN_OR_RETURN(DeviceBuffer buffer, Allocate(bytes.size()));
  ENGRAM_RETURN_IF_ERROR(buffer.CopyFrom(bytes));
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

absl::Status DeviceBuffer::CopyFrom(absl::Span<const std::byte> bytes) {
  ENGRAM_CHECK(bytes.size() <= size_bytes_);
  if (bytes.empty()) return absl::OkStatus();
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
      absl::StrCat("copying ", bytes.size(), " bytes to the device"));
  // From memory that is not pinned it returns once the bytes are staged, and
  // streams that do not block would not wait for the rest.
  return GpuStatus(cudaStreamSynchronize(nullptr), "end of a copy");
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::Allocate(size_t size_bytes) {
  if (size_bytes == 0) return PinnedBuffer();
  void* data = nullptr;
  if (const cudaError_t error =
          cudaHostAlloc(&data, size_bytes, cudaHostAllocPortable);
      error != cudaSuccess) {
    cudaGetLastError();
    return GpuStatus(error,
                     absl::StrCat("pinning ", size_bytes, " bytes of memory"));
  }
  return PinnedBuffer(static_cast<std::byte*>(data), size_bytes);
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

}  // namespace engram

#ifndef ENGRAM_CORE_GPU_GPU_MEMORY_H_
#define ENGRAM_CORE_GPU_GPU_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

// Memory of the device that is selected when it is allocated, not initialised,
// aligned to 256 bytes. Freed on destruction, which waits for the device: for
// start and end, not for the way of a request.
//
// Move-only. Thread safety: the object is not synchronised.
class DeviceBuffer {
 public:
  // RESOURCE_EXHAUSTED names the size and what is free.
  static absl::StatusOr<DeviceBuffer> Allocate(size_t size_bytes);
  // Allocates and uploads; returns when `bytes` may go.
  static absl::StatusOr<DeviceBuffer> Upload(absl::Span<const std::byte> bytes);
  template <typename T>
  static absl::StatusOr<DeviceBuffer> UploadArray(absl::Span<const T> values) {
    return Upload({reinterpret_cast<const std::byte*>(values.data()),
                   values.size() * sizeof(T)});
  }

  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  // Device address; the host must not touch it.
  std::byte* data() const { return data_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t size_bytes() const { return size_bytes_; }

  // Copies to the start of the buffer and waits for it.
  // REQUIRES: bytes.size() <= size_bytes().
  absl::Status CopyFrom(absl::Span<const std::byte> bytes);

 private:
  DeviceBuffer(std::byte* data, size_t size_bytes)
      : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Host memory that the device reads and writes itself, at the same address:
// copies from it run beside kernels, and kernels may gather from it. Slow to
// allocate (the kernel pins every page): allocate at start.
//
// Move-only. Thread safety: the object is not synchronised.
class PinnedBuffer {
 public:
  // RESOURCE_EXHAUSTED names the size.
  static absl::StatusOr<PinnedBuffer> Allocate(size_t size_bytes);

  PinnedBuffer() = default;
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t size_bytes() const { return size_bytes_; }

 private:
  PinnedBuffer(std::byte* data, size_t size_bytes)
      : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GPU_MEMORY_H_

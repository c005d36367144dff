#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/gpu/fake_cuda/fake_device.h"

using engram::fake_cuda::Device;
using engram::fake_cuda::Fail;
using engram::fake_cuda::Ranges;

namespace {

constexpr size_t kAlignment = 256;
constexpr int kFreshDeviceByte = 0xDB;
constexpr int kFreshPinnedByte = 0xDA;

bool Holds(const Ranges& ranges, const void* data, size_t size_bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  auto after = ranges.upper_bound(first);
  if (after == ranges.begin()) return false;
  --after;
  return first + size_bytes <= after->first + after->second;
}

cudaError_t Allocate(void** data, size_t size_bytes, int fresh,
                     Ranges& ranges) {
  const auto lock = Device::Get().Lock();
  if (size_bytes > Device::kMemoryBytes - Device::Get().used_bytes) {
    return Fail(cudaErrorMemoryAllocation);
  }
  const size_t rounded =
      (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  *data = std::aligned_alloc(kAlignment, rounded);
  std::memset(*data, fresh, rounded);
  ranges[static_cast<std::byte*>(*data)] = size_bytes;
  Device::Get().used_bytes += size_bytes;
  return cudaSuccess;
}

// As CUDA: waits for everything.
cudaError_t Free(void* data, Ranges& ranges) {
  if (data == nullptr) return cudaSuccess;
  const auto lock = Device::Get().Lock();
  const auto found = ranges.find(static_cast<std::byte*>(data));
  if (found == ranges.end()) return Fail(cudaErrorInvalidValue);
  Device::Get().RunAll();
  Device::Get().used_bytes -= found->second;
  ranges.erase(found);
  std::free(data);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** data, size_t size_bytes) {
  return Allocate(data, size_bytes, kFreshDeviceByte,
                  Device::Get().device_memory);
}

cudaError_t cudaFree(void* data) {
  return Free(data, Device::Get().device_memory);
}

cudaError_t cudaHostAlloc(void** data, size_t size_bytes, unsigned) {
  return Allocate(data, size_bytes, kFreshPinnedByte,
                  Device::Get().pinned_memory);
}

cudaError_t cudaFreeHost(void* data) {
  return Free(data, Device::Get().pinned_memory);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all_bytes) {
  const auto lock = Device::Get().Lock();
  *all_bytes = Device::kMemoryBytes;
  *free_bytes = Device::kMemoryBytes - Device::Get().used_bytes;
  return cudaSuccess;
}

// The device's side of a copy must be its memory.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size_bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  if (size_bytes == 0) return cudaSuccess;
  if (device.faults.lost) return Fail(cudaErrorIllegalAddress);
  if (device.faults.refused_copies > 0) {
    --device.faults.refused_copies;
    return Fail(cudaErrorInvalidValue);
  }
  const auto on_device = [&](const void* data) {
    return Holds(device.device_memory, data, size_bytes);
  };
  const auto pinned = [&](const void* data) {
    return Holds(device.pinned_memory, data, size_bytes);
  };
  if ((kind != cudaMemcpyDeviceToHost && !on_device(to)) ||
      (kind != cudaMemcpyHostToDevice && !on_device(from))) {
    return Fail(cudaErrorInvalidValue);
  }
  CUstream_st& queue = device.Find(stream);
  if (kind == cudaMemcpyHostToDevice && !pinned(from)) {
    // Memory that is not pinned is the caller's again when the call returns.
    const auto* bytes = static_cast<const std::byte*>(from);
    device.Put(queue, [to, staged = std::vector<std::byte>(
                               bytes, bytes + size_bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
    return cudaSuccess;
  }
  device.Put(queue, [=] { std::memcpy(to, from, size_bytes); });
  if (kind == cudaMemcpyDeviceToHost && !pinned(to)) {
    device.Run(queue, queue.enqueued);
  }
  return cudaSuccess;
}

// The default stream does not wait for streams that do not block. From memory
// that is not pinned it returns once the bytes are staged.
cudaError_t cudaMemcpy(void* to, const void* from, size_t size_bytes,
                       cudaMemcpyKind kind) {
  const cudaError_t put = cudaMemcpyAsync(to, from, size_bytes, kind, nullptr);
  if (put != cudaSuccess) return put;
  const auto lock = Device::Get().Lock();
  const bool staged = kind == cudaMemcpyHostToDevice &&
                      !Holds(Device::Get().pinned_memory, from, size_bytes);
  return staged ? cudaSuccess : cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t size_bytes,
                            cudaStream_t stream) {
  const auto lock = Device::Get().Lock();
  if (size_bytes > 0 && !Holds(Device::Get().device_memory, to, size_bytes)) {
    return Fail(cudaErrorInvalidValue);
  }
  Device::Get().Put(Device::Get().Find(stream),
                    [=] { std::memset(to, value, size_bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t size_bytes) {
  return cudaMemsetAsync(to, value, size_bytes, nullptr);
}

#include "tests/gpu/fake_cuda/fake_device.h"

#include <cstdlib>
#include <utility>

#include "tests/gpu/check/fill_random_core.h"

namespace engram::fake_cuda {
namespace {

constexpr int kVersion = 13000;

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

// Never destroyed: objects of static life time may still use it.
Device& Device::Get() {
  static Device& device = *new Device;
  return device;
}

Device::Device() {
  const char* mode = std::getenv("ENGRAM_FAKE_CUDA");
  mode_ = mode == nullptr ? "0" : mode;
  seed_ = std::strtoull(mode_.c_str(), nullptr, 10);
}

cudaStream_t Device::AddStream() {
  return streams_.emplace_back(std::make_unique<CUstream_st>()).get();
}

void Device::Run(CUstream_st& stream, uint64_t position) {
  while (stream.done < position) {
    const Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    operation();
    ++stream.done;
  }
}

void Device::RunAll() {
  Run(default_, default_.enqueued);
  for (const auto& stream : streams_) Run(*stream, stream->enqueued);
}

void Device::Put(CUstream_st& stream, Operation operation) {
  if (stream.capture != nullptr) {
    stream.capture->operations.push_back(std::move(operation));
    return;
  }
  stream.queue.push_back(std::move(operation));
  ++stream.enqueued;
  if (RunsNow()) Run(stream, stream.enqueued);
}

uint64_t Device::Draw() { return gpu_check::RandomWord(seed_, drawn_++); }

bool Device::RunsNow() {
  if (mode_ == "eager") return true;
  return mode_ != "lazy" && Draw() % 2 == 0;
}

cudaError_t Fail(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace engram::fake_cuda

using engram::fake_cuda::Device;
using engram::fake_cuda::Fail;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return Fail(cudaErrorInvalidDevice);
  *properties = {"this machine's CPU",   9, 0, 4, Device::kMemoryBytes,
                 Device::kMaxSharedBytes};
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : Fail(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize() {
  const auto lock = Device::Get().Lock();
  Device::Get().RunAll();
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel,
                                 cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return cudaSuccess;
  }
  const auto bytes = static_cast<size_t>(value);
  if (bytes > Device::kMaxSharedBytes) return Fail(cudaErrorInvalidValue);
  const auto lock = Device::Get().Lock();
  Device::Get().shared_bytes[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = engram::fake_cuda::kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = engram::fake_cuda::kVersion;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t) { return "fake error"; }
const char* cudaGetErrorString(cudaError_t) { return "of tests/gpu/fake_cuda"; }

cudaError_t cudaGetLastError() {
  return std::exchange(engram::fake_cuda::last_error, cudaSuccess);
}

#ifndef ENGRAM_TESTS_GPU_FAKE_CUDA_FAKE_DEVICE_H_
#define ENGRAM_TESTS_GPU_FAKE_CUDA_FAKE_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/gpu/fake_cuda/cuda_runtime_api.h"

// Streams, events, graphs and memory of one device that is this machine.

namespace engram::fake_cuda {

using Operation = std::function<void()>;
using TimePoint = std::chrono::steady_clock::time_point;

}  // namespace engram::fake_cuda

struct CUgraph_st {
  std::vector<engram::fake_cuda::Operation> operations;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<engram::fake_cuda::Operation>> operations;
};

struct CUstream_st {
  std::deque<engram::fake_cuda::Operation> queue;
  uint64_t enqueued = 0;
  uint64_t done = 0;
  std::unique_ptr<CUgraph_st> capture;  // being recorded
};

struct CUevent_st {
  CUstream_st* stream = nullptr;  // where it was recorded last
  uint64_t position = 0;
  std::shared_ptr<engram::fake_cuda::TimePoint> passed;
};

namespace engram::fake_cuda {

// What a test lets go wrong. All of it ends when it is cleared.
struct Faults {
  bool lost = false;       // as after a kernel's bad access: every call fails
  bool stuck = false;      // nothing that is asked for is ever done
  int refused_copies = 0;  // so many copies fail, and nothing else does
};

// Memory by its first byte.
using Ranges = std::map<const std::byte*, size_t>;

// The lock is held around every use of the rest, kernels included: one thing
// runs at a time.
class Device {
 public:
  static constexpr size_t kMemoryBytes = size_t{8} << 30;
  // Of a block: what any kernel may have, and what it may ask for.
  static constexpr size_t kSharedBytes = size_t{48} << 10;
  static constexpr size_t kMaxSharedBytes = size_t{227} << 10;

  static Device& Get();

  std::unique_lock<std::recursive_mutex> Lock() {
    return std::unique_lock<std::recursive_mutex>(mutex_);
  }

  // Null is the default stream.
  CUstream_st& Find(cudaStream_t stream) {
    return stream == nullptr ? default_ : *stream;
  }
  cudaStream_t AddStream();

  // Does what stands before `position` of the stream.
  void Run(CUstream_st& stream, uint64_t position);
  void RunAll();
  // Behind what is on the stream, or into the graph that is being recorded.
  void Put(CUstream_st& stream, Operation operation);

  // A random number.
  uint64_t Draw();

  Ranges device_memory;
  Ranges pinned_memory;
  size_t used_bytes = 0;
  Faults faults;
  // What kernels have asked for.
  std::map<const void*, size_t> shared_bytes;

 private:
  Device();
  bool RunsNow();

  std::recursive_mutex mutex_;
  std::string mode_;
  uint64_t seed_ = 0;
  uint64_t drawn_ = 0;
  CUstream_st default_;
  // Those that were destroyed too: events still name them.
  std::vector<std::unique_ptr<CUstream_st>> streams_;
};

// Keeps `error` for cudaGetLastError and returns it.
cudaError_t Fail(cudaError_t error);

}  // namespace engram::fake_cuda

#endif  // ENGRAM_TESTS_GPU_FAKE_CUDA_FAKE_DEVICE_H_

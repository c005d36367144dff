#ifndef ENGRAM_TESTS_GPU_FAKE_CUDA_LAUNCHER_H_
#define ENGRAM_TESTS_GPU_FAKE_CUDA_LAUNCHER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/gpu/gpu_types.h"
#include "tests/gpu/emulator/cuda_runtime.h"
#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/fake_cuda/cuda_runtime_api.h"
#include "tests/gpu/fake_cuda/fake_device.h"

namespace engram::fake_cuda {

// What CUDA takes for a grid or a block.
struct Extent {
  Extent(uint32_t x_threads) : x(x_threads) {}  // NOLINT: as dim3 converts
  Extent(dim3 all) : x(all.x), y(all.y), z(all.z) {}  // NOLINT

  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

// translate_launch.cmake makes Launcher(kernel).At(g, b, s, t)(arguments) out
// of kernel<<<g, b, s, t>>>(arguments).
template <typename... Parameters>
class Launcher {
 public:
  explicit Launcher(void (*kernel)(Parameters...)) : kernel_(kernel) {}

  Launcher& At(Extent grid, Extent block, size_t shared_bytes = 0,
               cudaStream_t stream = nullptr) {
    shape_ = {.grid_x = grid.x,
              .grid_y = grid.y,
              .grid_z = grid.z,
              .block_x = block.x,
              .block_y = block.y,
              .shared_bytes = static_cast<uint32_t>(shared_bytes)};
    stream_ = stream;
    return *this;
  }

  // Arguments are copied when the launch is made, as CUDA does.
  void operator()(Parameters... arguments) const {
    Device& device = Device::Get();
    const auto lock = device.Lock();
    size_t limit = Device::kSharedBytes;
    const auto asked =
        device.shared_bytes.find(reinterpret_cast<const void*>(kernel_));
    if (asked != device.shared_bytes.end()) {
      limit = std::max(limit, asked->second);
    }
    if (shape_.shared_bytes > limit) {
      Fail(cudaErrorInvalidValue);
      return;
    }
    device.Put(device.Find(stream_),
               [kernel = kernel_, shape = shape_,
                values = std::tuple<Parameters...>(arguments...)] {
                 std::apply(
                     [&](const Parameters&... values) {
                       emulator::Launch(shape, Device::Get().Draw(), kernel,
                                        values...);
                     },
                     values);
               });
  }

 private:
  void (*const kernel_)(Parameters...);
  LaunchShape shape_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace engram::fake_cuda

#endif  // ENGRAM_TESTS_GPU_FAKE_CUDA_LAUNCHER_H_

#ifndef ENGRAM_TESTS_GPU_EMULATOR_EMULATOR_H_
#define ENGRAM_TESTS_GPU_EMULATOR_EMULATOR_H_

#include <cstdint>
#include <tuple>
#include <utility>

#include "core/gpu/gpu_types.h"

namespace engram::emulator {

namespace internal {

void RunGrid(const LaunchShape& shape, uint64_t seed,
             void (*thread)(const void* call), const void* call);

}  // namespace internal

// Runs a kernel as `kernel<<<shape>>>(arguments...)` would and returns when
// all is done. Blocks run one after another, the threads of a block
// interleaved in an order drawn from `seed`; dynamic shared memory holds 0xFF
// at the start of each block.
//
// Prints block and thread and aborts for: a shape that no device takes, a
// block that is not of whole warps, a barrier or warp-wide operation that not
// all of its threads reach, lanes of a warp in different ones, a misaligned
// access through core/gpu/ptx.cuh, a thread that ends with copies under way.
//
// Thread safety: one launch at a time in a process.
template <typename... Parameters, typename... Arguments>
void Launch(const LaunchShape& shape, uint64_t seed,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  using Values = std::tuple<Parameters...>;
  using Call = std::pair<void (*)(Parameters...), Values>;
  const Call call(kernel, Values(std::forward<Arguments>(arguments)...));
  internal::RunGrid(
      shape, seed,
      [](const void* erased) {
        const auto& [function, values] = *static_cast<const Call*>(erased);
        std::apply(function, values);
      },
      &call);
}

}  // namespace engram::emulator

#endif  // ENGRAM_TESTS_GPU_EMULATOR_EMULATOR_H_

#ifndef ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_CORE_H_
#define ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_CORE_H_

#include <cstdint>

#include "core/model/number_formats.h"

// Random contents as a function of their place: the device fills tables that
// are too large to send, and the host knows every byte of them.

namespace engram::gpu_check {

// Word `index` of the contents of `seed` (SplitMix64).
ENGRAM_HOST_DEVICE inline uint64_t RandomWord(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Four bf16 values of magnitude 2^-7 to 2 out of a random word.
ENGRAM_HOST_DEVICE inline uint64_t FourBf16(uint64_t word) {
  const uint64_t exponents =
      (((word >> 7) & 0x0007000700070007) + 0x0078007800780078) << 7;
  return (word & 0x807F807F807F807F) | exponents;
}

struct FillRandomArgs {
  uint64_t* words = nullptr;
  uint64_t count = 0;
  uint64_t seed = 0;
  uint32_t as_bf16 = 0;  // 1: FourBf16 of each word
};

inline constexpr uint32_t kFillThreads = 256;
inline constexpr uint32_t kFillBlocks = 2048;

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_FILL_RANDOM_CORE_H_

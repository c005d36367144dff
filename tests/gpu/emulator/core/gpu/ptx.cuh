#ifndef ENGRAM_TESTS_GPU_EMULATOR_CORE_GPU_PTX_CUH_
#define ENGRAM_TESTS_GPU_EMULATOR_CORE_GPU_PTX_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/model/number_formats.h"
#include "tests/gpu/emulator/collective.h"
#include "tests/gpu/emulator/copies.h"
#include "tests/gpu/emulator/mma.h"

// The emulator's core/gpu/ptx.cuh: the same functions for the CPU.

namespace engram::gpu {

template <typename T>
T LoadStreaming(const T* from) {
  emulator::CheckAligned(from, sizeof(T));
  return *from;
}

template <typename T>
T LoadCached(const T* from) {
  emulator::CheckAligned(from, sizeof(T));
  return *from;
}

template <typename T>
void Store(T* to, T value) {
  emulator::CheckAligned(to, sizeof(T));
  *to = value;
}

template <typename T>
void StoreStreaming(T* to, T value) {
  emulator::CheckAligned(to, sizeof(T));
  *to = value;
}

inline void MmaBf16(float (&d)[4], const uint32_t (&a)[4],
                    const uint32_t (&b)[2]) {
  emulator::MmaFragments fragments = {d, a, b};
  emulator::WarpCollective("MmaBf16", &fragments, &emulator::MultiplyFragments);
}

inline uint32_t MulBf16x2(uint32_t a, uint32_t b) {
  return emulator::MultiplyBf16Pairs(a, b);
}

inline uint32_t PackBf16x2(float low, float high) {
  const auto bits = [](float value) -> uint32_t {
    return value != value ? 0x7FFF : FloatToBf16(value);
  };
  return bits(high) << 16 | bits(low);
}

inline uint32_t PermuteBytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t which = selector >> (4 * i) & 7;
    chosen |= static_cast<uint32_t>(bytes >> (8 * which) & 0xFF) << (8 * i);
  }
  return chosen;
}

namespace internal {

template <typename T>
struct ShuffleOperand {
  T value;
  uint32_t from;
};

template <typename T>
void CompleteShuffle(emulator::WarpOperands operands) {
  T values[emulator::kWarpLanes];
  for (size_t lane = 0; lane < emulator::kWarpLanes; ++lane) {
    values[lane] = static_cast<ShuffleOperand<T>*>(operands[lane])->value;
  }
  for (void* const erased : operands) {
    auto* const operand = static_cast<ShuffleOperand<T>*>(erased);
    operand->value = values[operand->from];
  }
}

template <typename T>
T ShuffleFrom(const char* name, T value, uint32_t from) {
  ShuffleOperand<T> operand = {value, from};
  emulator::WarpCollective(name, &operand, &CompleteShuffle<T>);
  return operand.value;
}

inline uint32_t Lane() {
  return (threadIdx.y * blockDim.x + threadIdx.x) % emulator::kWarpLanes;
}

}  // namespace internal

template <typename T>
T Shuffle(T value, uint32_t lane) {
  return internal::ShuffleFrom("Shuffle", value, lane % 32);
}

template <typename T>
T ShuffleXor(T value, uint32_t mask) {
  return internal::ShuffleFrom("ShuffleXor", value,
                               (internal::Lane() ^ mask) % 32);
}

inline unsigned char* SharedBytes() {
  return reinterpret_cast<unsigned char*>(emulator::SharedMemory());
}

inline void CopyAsync(uint4* shared, const uint4* from) {
  emulator::StartCopy(shared, from, sizeof(uint4));
}

inline void CommitCopies() { emulator::CommitCopies(); }

template <int kUnderWay>
void WaitCopies() {
  emulator::WaitCopies(kUnderWay);
}

inline void AtomicMin(uint32_t* address, uint32_t value) {
  *address = std::min(*address, value);
}

}  // namespace engram::gpu

#endif  // ENGRAM_TESTS_GPU_EMULATOR_CORE_GPU_PTX_CUH_

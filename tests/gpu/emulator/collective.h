#ifndef ENGRAM_TESTS_GPU_EMULATOR_COLLECTIVE_H_
#define ENGRAM_TESTS_GPU_EMULATOR_COLLECTIVE_H_

#include <cstddef>

// What the device code's stand-ins are made of; kernels and tests do not
// use it.

namespace engram::emulator {

constexpr size_t kWarpLanes = 32;

// What each lane brought.
using WarpOperands = void* const (&)[kWarpLanes];

// Waits for all lanes of the warp, then calls `complete` once, which reads and
// writes what the lanes' operands point to (on their stacks). Lanes that bring
// different functions, or do not come, are reported under `name`.
void WarpCollective(const char* name, void* operand,
                    void (*complete)(WarpOperands operands));

// Waits for all threads of the block.
void BlockBarrier();

// The block's dynamic shared memory.
std::byte* SharedMemory();

// Reports an access that the device would refuse.
void CheckAligned(const void* address, size_t alignment);

}  // namespace engram::emulator

#endif  // ENGRAM_TESTS_GPU_EMULATOR_COLLECTIVE_H_

#ifndef ENGRAM_TESTS_GPU_EMULATOR_COPIES_H_
#define ENGRAM_TESTS_GPU_EMULATOR_COPIES_H_

#include <cstddef>

namespace engram::emulator {

// The running thread's copies to shared memory (CopyAsync of ptx.cuh). They
// are made at the last moment, in WaitCopies: what reads too early reads what
// was there before.
void StartCopy(void* to, const void* from, size_t size_bytes);
void CommitCopies();
void WaitCopies(size_t under_way);

// Whether thread `number` of the block has waited for all its copies.
bool NoCopiesUnderWay(size_t number);

}  // namespace engram::emulator

#endif  // ENGRAM_TESTS_GPU_EMULATOR_COPIES_H_

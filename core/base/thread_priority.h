#ifndef ENGRAM_CORE_BASE_THREAD_PRIORITY_H_
#define ENGRAM_CORE_BASE_THREAD_PRIORITY_H_

namespace engram {

// The calling thread takes what the others of its control group leave of the
// processors, and makes room at once where the kernel can (Linux 6.12): for
// work that nobody waits for beside threads that serve. It can starve while it
// holds a lock: what it does under one that serving threads take too must be as
// short as it can be.
void LowerThreadPriority();

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_THREAD_PRIORITY_H_

#ifndef ENGRAM_CORE_BASE_THREAD_NUMBER_H_
#define ENGRAM_CORE_BASE_THREAD_NUMBER_H_

#include <atomic>
#include <cstddef>

namespace engram {

// The number of the calling thread among those that have asked, from 1: which
// stripe of a counter is its own, so that threads do not share a cache line.
inline size_t ThreadNumber() {
  static std::atomic<size_t> next{1};
  thread_local size_t number = 0;  // 0: none yet; constant, so without a guard
  if (number == 0) number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_THREAD_NUMBER_H_

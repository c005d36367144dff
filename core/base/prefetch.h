#ifndef ENGRAM_CORE_BASE_PREFETCH_H_
#define ENGRAM_CORE_BASE_PREFETCH_H_

#include <cstddef>
#include <cstdint>

namespace engram {

inline constexpr size_t kCacheLineBytes = 64;

enum class PrefetchFor { kRead, kWrite };

// Asks for every cache line of a row, so that copying it soon after does not
// wait for memory. `data` need not be readable.
//
// GCC takes a function that does nothing but prefetch for one without effect,
// and drops its calls and those of what calls only it. The empty asm is an
// effect. tests/lint/check_prefetch.py looks whether it was enough.
template <PrefetchFor kFor = PrefetchFor::kRead>
inline void PrefetchBytes(const void* data, size_t size_bytes = 1) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = begin + size_bytes;
  uintptr_t line = begin - begin % kCacheLineBytes;
  for (; line < end; line += kCacheLineBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(line),
                       kFor == PrefetchFor::kWrite ? 1 : 0);
  }
  asm volatile("");
}

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_PREFETCH_H_

#ifndef ENGRAM_CORE_BASE_THREAD_SCRATCH_H_
#define ENGRAM_CORE_BASE_THREAD_SCRATCH_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

// Memory in huge pages that a thread uses for a while, and finds again the next
// time: the kernel clears memory that is new, which costs as much as reading
// into it what a disk gives.
//
// Not to leave its thread. Move-only.
class ThreadScratch {
 public:
  // RESOURCE_EXHAUSTED: the kernel refused `size_bytes`. REQUIRES: the thread
  // has taken none that is not gone.
  static absl::StatusOr<ThreadScratch> Take(size_t size_bytes);
  // Gives back to the machine what the thread would find again. REQUIRES: as
  // above.
  static void Free();

  ~ThreadScratch();
  ThreadScratch(ThreadScratch&& other) noexcept;
  ThreadScratch& operator=(ThreadScratch&&) = delete;

  // `size_bytes`, aligned to a huge page, contents unspecified.
  absl::Span<std::byte> bytes() { return bytes_; }

 private:
  explicit ThreadScratch(absl::Span<std::byte> bytes) : bytes_(bytes) {}

  absl::Span<std::byte> bytes_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_THREAD_SCRATCH_H_

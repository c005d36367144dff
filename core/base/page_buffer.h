#ifndef ENGRAM_CORE_BASE_PAGE_BUFFER_H_
#define ENGRAM_CORE_BASE_PAGE_BUFFER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

// Anonymous zeroed memory in 2 MiB pages where the kernel gives them: a random
// gather over 4 KiB pages spends up to half its time in TLB misses.
//
// Move-only; unmapped on destruction. Thread safety: the object is not
// synchronised; the memory is plain memory.
class PageBuffer {
 public:
  // RESOURCE_EXHAUSTED: the kernel refused `size_bytes`.
  static absl::StatusOr<PageBuffer> Allocate(size_t size_bytes);

  // Addresses for up to `max_bytes`, which cost no memory and count in no
  // limit of it, not even where the kernel does not overcommit. bytes() is
  // empty until Grow. RESOURCE_EXHAUSTED: the kernel refused them.
  static absl::StatusOr<PageBuffer> Reserve(size_t max_bytes);

  PageBuffer() = default;
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  // bytes() has `size_bytes` from now on; what was there stays where it is.
  // RESOURCE_EXHAUSTED: the kernel refused them; nothing has changed. REQUIRES:
  // not less than before, not more than was reserved.
  absl::Status Grow(size_t size_bytes);

  // Gives the memory of whole pages back to the machine; they are zero when
  // they are used again. What the kernel says if it does not take them.
  // REQUIRES: `pages` is in bytes() and starts and ends with a page.
  absl::Status Discard(absl::Span<std::byte> pages);

  absl::Span<std::byte> bytes() { return {data_, size_bytes_}; }
  absl::Span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  // All addresses, also those that nothing may be written to yet.
  absl::Span<std::byte> reserved() { return {data_, reserved_bytes_}; }

  // Bytes the kernel backs with huge pages now (AnonHugePages in smaps). Reads
  // /proc, so not for hot paths; 0 where it cannot be told.
  size_t HugeBytes() const;

  // Of the pages that Discard takes.
  static size_t PageBytes();

 private:
  PageBuffer(std::byte* data, size_t reserved_bytes)
      : data_(data), reserved_bytes_(reserved_bytes) {}

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t reserved_bytes_ = 0;  // whole huge pages
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_PAGE_BUFFER_H_

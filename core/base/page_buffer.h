#ifndef ENGRAM_CORE_BASE_PAGE_BUFFER_H_
#define ENGRAM_CORE_BASE_PAGE_BUFFER_H_

#include <cstddef>

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

  PageBuffer() = default;
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  absl::Span<std::byte> bytes() { return {data_, size_bytes_}; }
  absl::Span<const std::byte> bytes() const { return {data_, size_bytes_}; }

  // Bytes the kernel backs with huge pages now (AnonHugePages in smaps). Reads
  // /proc, so not for hot paths; 0 where it cannot be told.
  size_t HugeBytes() const;

 private:
  PageBuffer(std::byte* data, size_t size_bytes, size_t mapped_bytes)
      : data_(data), size_bytes_(size_bytes), mapped_bytes_(mapped_bytes) {}

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t mapped_bytes_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_PAGE_BUFFER_H_

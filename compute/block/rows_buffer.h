#ifndef ENGRAM_COMPUTE_BLOCK_ROWS_BUFFER_H_
#define ENGRAM_COMPUTE_BLOCK_ROWS_BUFFER_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

class RowsPool;

// Memory that rows are fetched into, not initialised: a piece of a pool's
// arena, or plain memory. Goes back where it came from on destruction; the
// pool outlives it.
//
// Move-only. Thread safety: the object is not synchronised.
class RowsBuffer {
 public:
  // Plain memory. RESOURCE_EXHAUSTED names the size.
  static absl::StatusOr<RowsBuffer> Plain(size_t size_bytes);

  RowsBuffer() = default;
  ~RowsBuffer();
  RowsBuffer(RowsBuffer&& other) noexcept { Swap(other); }
  RowsBuffer& operator=(RowsBuffer&& other) noexcept {
    RowsBuffer taken(std::move(other));
    Swap(taken);
    return *this;
  }

  absl::Span<std::byte> bytes() const { return bytes_; }

 private:
  friend class RowsPool;
  void Swap(RowsBuffer& other);

  absl::Span<std::byte> bytes_;
  std::unique_ptr<std::byte[]> plain_;
  RowsPool* pool_ = nullptr;  // of bytes_, if they are of an arena
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_ROWS_BUFFER_H_

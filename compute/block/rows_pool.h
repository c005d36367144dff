#ifndef ENGRAM_COMPUTE_BLOCK_ROWS_POOL_H_
#define ENGRAM_COMPUTE_BLOCK_ROWS_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/block/rows_buffer.h"
#include "core/base/mutex.h"

namespace engram {

// How much of a bounded memory for rows is taken. All 0 where there is none.
struct RowsPoolUse {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t fallbacks = 0;  // buffers that did not fit, since the start
};

// Cuts buffers out of one arena that is dear to make (pinned memory): the
// first gap that is long enough. What does not fit is plain memory, so a full
// arena makes copies slower and fails nothing.
//
// Thread safety: all methods may be called concurrently.
class RowsPool {
 public:
  // Pieces start at multiples of it, counted from the start of the arena.
  static constexpr size_t kAlignment = 256;

  // The arena outlives the pool.
  explicit RowsPool(absl::Span<std::byte> arena);
  // REQUIRES: every buffer is gone.
  ~RowsPool();
  RowsPool(const RowsPool&) = delete;
  RowsPool& operator=(const RowsPool&) = delete;

  // RESOURCE_EXHAUSTED: no plain memory either.
  absl::StatusOr<RowsBuffer> Allocate(size_t size_bytes);

  // Whether all of `bytes` is memory of the arena.
  bool Contains(absl::Span<const std::byte> bytes) const;
  RowsPoolUse use() const;

 private:
  friend class RowsBuffer;
  void Free(absl::Span<std::byte> bytes);

  const absl::Span<std::byte> arena_;
  mutable Mutex mutex_;
  // Gaps by their offset, none touching the next.
  std::map<size_t, size_t> gaps_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t fallbacks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_ROWS_POOL_H_

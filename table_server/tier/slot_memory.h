#ifndef ENGRAM_TABLE_SERVER_TIER_SLOT_MEMORY_H_
#define ENGRAM_TABLE_SERVER_TIER_SLOT_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/page_buffer.h"

namespace engram {

// Slots of one size, one after another in huge pages: what a partition of a
// table lies in. Partitions of V4.1 have 17 MB, but those of small tables some
// kilobytes, of which many share a page.
//
// The addresses of all slots are reserved at first and become usable from the
// lowest on, as slots are taken. The kernel gives memory as it is written to.
//
// Thread safety: Take and Give may be called concurrently. The memory is plain
// memory; a slot belongs to whoever took it until it is given back.
class SlotMemory {
 public:
  // What a slot of at least `bytes` takes: whole pages, if those are many.
  static size_t SlotBytes(size_t bytes);

  // Spread over `numa_nodes` if there are several. RESOURCE_EXHAUSTED: the
  // kernel refused the addresses.
  static absl::StatusOr<std::unique_ptr<SlotMemory>> Create(
      size_t slot_bytes, size_t slot_count, absl::Span<const int> numa_nodes);

  // The lowest slot that is free: its contents are unspecified.
  // RESOURCE_EXHAUSTED: all are taken, or the kernel refused memory.
  absl::StatusOr<std::byte*> Take();
  // Its memory goes back to the machine, but for pages in which a neighbour
  // that is taken has bytes too. REQUIRES: of Take.
  void Give(std::byte* slot);

  // As PageBuffer::HugeBytes.
  size_t HugeBytes() const { return buffer_.HugeBytes(); }

 private:
  SlotMemory(PageBuffer buffer, size_t slot_bytes, size_t slot_count);

  // The pages with bytes of `slot` and of no slot that is taken.
  absl::Span<std::byte> PagesOfOnly(size_t slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AnyTaken(size_t first, size_t end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t slot_bytes_;
  PageBuffer buffer_;  // grows and discards under mutex_

  // Held while the kernel changes the mapping, as a page that is given back may
  // be of the slot that is taken next. Whoever reads rows never wants it.
  Mutex mutex_;
  std::vector<bool> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_SLOT_MEMORY_H_

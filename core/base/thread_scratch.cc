#include "core/base/thread_scratch.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/page_buffer.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

struct Kept {
  PageBuffer buffer;
  bool taken = false;
};

Kept& KeptOfThread() {
  thread_local Kept kept;
  return kept;
}

}  // namespace

absl::StatusOr<ThreadScratch> ThreadScratch::Take(size_t size_bytes) {
  Kept& kept = KeptOfThread();
  ENGRAM_CHECK(!kept.taken && size_bytes > 0);
  if (kept.buffer.bytes().size() < size_bytes) {
    kept.buffer = PageBuffer();  // before the larger one
    ENGRAM_ASSIGN_OR_RETURN(kept.buffer, PageBuffer::Allocate(size_bytes));
  }
  kept.taken = true;
  return ThreadScratch(kept.buffer.bytes().subspan(0, size_bytes));
}

void ThreadScratch::Free() {
  Kept& kept = KeptOfThread();
  ENGRAM_CHECK(!kept.taken);
  kept.buffer = PageBuffer();
}

ThreadScratch::~ThreadScratch() {
  if (bytes_.empty()) return;
  Kept& kept = KeptOfThread();
  ENGRAM_CHECK(kept.taken && kept.buffer.bytes().data() == bytes_.data());
  kept.taken = false;
}

ThreadScratch::ThreadScratch(ThreadScratch&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

}  // namespace engram

#include "compute/block/rows_pool.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace engram {
namespace {

size_t RoundUp(size_t bytes) {
  return (bytes + RowsPool::kAlignment - 1) / RowsPool::kAlignment *
         RowsPool::kAlignment;
}

}  // namespace

// ---- RowsBuffer ----

absl::StatusOr<RowsBuffer> RowsBuffer::Plain(size_t size_bytes) {
  RowsBuffer buffer;
  buffer.plain_.reset(new (std::nothrow) std::byte[size_bytes]);
  if (buffer.plain_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", size_bytes, " bytes of rows"));
  }
  buffer.bytes_ = {buffer.plain_.get(), size_bytes};
  return buffer;
}

RowsBuffer::~RowsBuffer() {
  if (pool_ != nullptr) pool_->Free(bytes_);
}

void RowsBuffer::Swap(RowsBuffer& other) {
  std::swap(bytes_, other.bytes_);
  std::swap(plain_, other.plain_);
  std::swap(pool_, other.pool_);
}

// ---- RowsPool ----

RowsPool::RowsPool(absl::Span<std::byte> arena)
    : arena_(arena.first(arena.size() / kAlignment * kAlignment)) {
  if (!arena_.empty()) gaps_.emplace(0, arena_.size());
}

RowsPool::~RowsPool() { ENGRAM_CHECK(use().used_bytes == 0); }

absl::StatusOr<RowsBuffer> RowsPool::Allocate(size_t size_bytes) {
  const size_t taken = RoundUp(std::max<size_t>(size_bytes, 1));
  {
    MutexLock lock(&mutex_);
    const auto gap = std::find_if(gaps_.begin(), gaps_.end(), [&](auto& entry) {
      return entry.second >= taken;
    });
    if (gap != gaps_.end()) {
      const auto [offset, length] = *gap;
      gaps_.erase(gap);
      if (length > taken) gaps_.emplace(offset + taken, length - taken);
      used_bytes_ += taken;
      RowsBuffer buffer;
      buffer.bytes_ = arena_.subspan(offset, size_bytes);
      buffer.pool_ = this;
      return buffer;
    }
    ++fallbacks_;
  }
  return RowsBuffer::Plain(size_bytes);
}

void RowsPool::Free(absl::Span<std::byte> bytes) {
  const auto offset = static_cast<size_t>(bytes.data() - arena_.data());
  const size_t taken = RoundUp(std::max<size_t>(bytes.size(), 1));
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(taken <= used_bytes_);
  used_bytes_ -= taken;
  auto gap = gaps_.emplace(offset, taken).first;
  if (const auto next = std::next(gap);
      next != gaps_.end() && next->first == offset + taken) {
    gap->second += next->second;
    gaps_.erase(next);
  }
  if (gap == gaps_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second == offset) {
    before->second += gap->second;
    gaps_.erase(gap);
  }
}

bool RowsPool::Contains(absl::Span<const std::byte> bytes) const {
  const std::less_equal<const std::byte*> not_after;
  return not_after(arena_.data(), bytes.data()) &&
         not_after(bytes.data() + bytes.size(), arena_.data() + arena_.size());
}

RowsPoolUse RowsPool::use() const {
  MutexLock lock(&mutex_);
  return {.limit_bytes = arena_.size(),
          .used_bytes = used_bytes_,
          .fallbacks = fallbacks_};
}

}  // namespace engram

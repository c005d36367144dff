#include "table_server/service/reply_buffers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/page_buffer.h"
#include "core/base/prefetch.h"

namespace engram {
namespace {

constexpr size_t kSlabBytes = size_t{2} << 20;  // one huge page
// Below this, the heap is as good and no buffer is held for a few rows.
constexpr size_t kSmallBytes = size_t{16} << 10;

constexpr size_t kRoomBytes = kHeadRoomBytes + kTailRoomBytes;

size_t BufferBytes(size_t rows_bytes) {
  return (rows_bytes + kRoomBytes + kCacheLineBytes - 1) / kCacheLineBytes *
         kCacheLineBytes;
}

}  // namespace

class ReplyBuffers::Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(size_t buffer_bytes, size_t max_bytes)
      : buffer_bytes_(buffer_bytes),
        slab_bytes_(std::max(kSlabBytes, buffer_bytes)),
        max_slabs_(max_bytes / slab_bytes_) {}

  // Empty: all are in use and no more may be kept.
  grpc::Slice TakeSlice() {
    std::byte* data = nullptr;
    {
      MutexLock lock(&mutex_);
      if (free_.empty() && !AddSlab()) return grpc::Slice();
      data = free_.back();
      free_.pop_back();
    }
    return grpc::Slice(data, buffer_bytes_, &Pool::GiveBack,
                       new Loan{shared_from_this(), data});
  }

  size_t bytes() const {
    MutexLock lock(&mutex_);
    return slabs_.size() * slab_bytes_;
  }

 private:
  struct Loan {
    std::shared_ptr<Pool> pool;
    std::byte* data;
  };

  static void GiveBack(void* loan_pointer) {
    const std::unique_ptr<Loan> loan(static_cast<Loan*>(loan_pointer));
    MutexLock lock(&loan->pool->mutex_);
    loan->pool->free_.push_back(loan->data);
  }

  bool AddSlab() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (slabs_.size() >= max_slabs_) return false;
    absl::StatusOr<PageBuffer> slab = PageBuffer::Allocate(slab_bytes_);
    if (!slab.ok()) return false;
    const absl::Span<std::byte> bytes = slab->bytes();
    slabs_.push_back(*std::move(slab));
    for (size_t at = 0; at + buffer_bytes_ <= bytes.size();
         at += buffer_bytes_) {
      free_.push_back(bytes.data() + at);
    }
    return true;
  }

  const size_t buffer_bytes_;
  const size_t slab_bytes_;
  const size_t max_slabs_;
  mutable Mutex mutex_;
  std::vector<PageBuffer> slabs_ ABSL_GUARDED_BY(mutex_);
  // The last to come back is the first to go: it is likely in a cache.
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
};

ReplyBuffer::ReplyBuffer(grpc::Slice slice, size_t rows_bytes)
    : slice_(std::move(slice)),
      // The memory is ours until the slice is handed on.
      data_(reinterpret_cast<std::byte*>(const_cast<uint8_t*>(slice_.begin()))),
      rows_bytes_(rows_bytes) {}

grpc::Slice ReplyBuffer::Release(const Framing& framing) && {
  const size_t begin = kHeadRoomBytes - framing.before;
  return slice_.sub(begin, kHeadRoomBytes + rows_bytes_ + framing.after);
}

ReplyBuffers::ReplyBuffers(const Options& options)
    : options_(options),
      pool_(std::make_shared<Pool>(BufferBytes(options.rows_bytes),
                                   options.max_pooled_bytes)) {}

ReplyBuffer ReplyBuffers::Take(size_t rows_bytes) {
  ENGRAM_CHECK(rows_bytes <= options_.rows_bytes);
  if (rows_bytes > kSmallBytes) {
    grpc::Slice slice = pool_->TakeSlice();
    if (slice.size() > 0) return {std::move(slice), rows_bytes};
  }
  return {grpc::Slice(rows_bytes + kRoomBytes), rows_bytes};
}

size_t ReplyBuffers::pooled_bytes() const { return pool_->bytes(); }

}  // namespace engram

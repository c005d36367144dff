#ifndef ENGRAM_ENGRAM_CLIENT_RPC_HEDGE_BUFFERS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_HEDGE_BUFFERS_H_

#include <prometheus/gauge.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"

namespace engram {

// Memory for the rows of hedges, which have to wait until they are known to be
// needed; bounded for a client as a whole.
//
// Thread safety: all methods may be called concurrently.
class HedgeBuffers : public std::enable_shared_from_this<HedgeBuffers> {
 public:
  // Not initialised. Keeps what it came from.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : owner_(std::move(other.owner_)),
          bytes_(std::move(other.bytes_)),
          size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer() {
      if (owner_ != nullptr) owner_->GiveBack(size_);
    }
    explicit operator bool() const { return owner_ != nullptr; }
    absl::Span<std::byte> bytes() const { return {bytes_.get(), size_}; }

   private:
    friend class HedgeBuffers;
    Buffer(std::shared_ptr<HedgeBuffers> owner, size_t size)
        : owner_(std::move(owner)),
          bytes_(std::make_unique_for_overwrite<std::byte[]>(size)),
          size_(size) {}

    std::shared_ptr<HedgeBuffers> owner_;
    std::unique_ptr<std::byte[]> bytes_;
    size_t size_ = 0;
  };

  // `used` shows how much is taken.
  HedgeBuffers(uint64_t max_bytes, std::shared_ptr<prometheus::Gauge> used)
      : max_bytes_(max_bytes), used_gauge_(std::move(used)) {}

  // None: the bound does not allow it.
  Buffer Take(size_t size_bytes) {
    uint64_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (size_bytes > max_bytes_ - used) return {};
    } while (!used_bytes_.compare_exchange_weak(used, used + size_bytes));
    used_gauge_->Increment(static_cast<double>(size_bytes));
    return Buffer(shared_from_this(), size_bytes);
  }

  uint64_t used_bytes() const {
    return used_bytes_.load(std::memory_order_relaxed);
  }
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  void GiveBack(size_t size_bytes) {
    used_bytes_.fetch_sub(size_bytes);
    used_gauge_->Decrement(static_cast<double>(size_bytes));
  }

  const uint64_t max_bytes_;
  const std::shared_ptr<prometheus::Gauge> used_gauge_;
  std::atomic<uint64_t> used_bytes_{0};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_HEDGE_BUFFERS_H_

#ifndef ENGRAM_COMPUTE_BLOCK_SLOT_POOL_H_
#define ENGRAM_COMPUTE_BLOCK_SLOT_POOL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace engram {

// A fixed number of things that one caller uses at a time. The one that came
// back last goes out first: its memory and its graphs are the warmest.
//
// Thread safety: all methods may be called concurrently.
template <typename Slot>
class SlotPool {
 public:
  // A slot of the pool, which outlives it. Move-only.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : pool_(other.pool_), slot_(std::move(other.slot_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (slot_ != nullptr) pool_->Return(std::move(slot_));
    }
    Slot& operator*() const { return *slot_; }
    Slot* operator->() const { return slot_.get(); }

   private:
    friend class SlotPool;
    Lease(SlotPool* pool, std::unique_ptr<Slot> slot)
        : pool_(pool), slot_(std::move(slot)) {}

    SlotPool* pool_;
    std::unique_ptr<Slot> slot_;
  };

  explicit SlotPool(std::vector<std::unique_ptr<Slot>> slots)
      : size_(slots.size()), free_(std::move(slots)) {}
  // REQUIRES: every lease is gone.
  ~SlotPool() {
    MutexLock lock(&mutex_);
    ENGRAM_CHECK(free_.size() == size_);
  }

  // RESOURCE_EXHAUSTED: none was free until `deadline`.
  absl::StatusOr<Lease> Acquire(absl::Time deadline) {
    MutexLock lock(&mutex_);
    while (free_.empty()) {
      if (!returned_.WaitUntil(&mutex_, deadline) && free_.empty()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("all ", size_, " slots of the device stayed in use"));
      }
    }
    std::unique_ptr<Slot> slot = std::move(free_.back());
    free_.pop_back();
    return Lease(this, std::move(slot));
  }

  size_t size() const { return size_; }
  size_t in_use() const {
    MutexLock lock(&mutex_);
    return size_ - free_.size();
  }

 private:
  void Return(std::unique_ptr<Slot> slot) {
    MutexLock lock(&mutex_);
    free_.push_back(std::move(slot));
    returned_.NotifyOne();
  }

  const size_t size_;
  mutable Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<Slot>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_SLOT_POOL_H_

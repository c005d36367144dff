#ifndef ENGRAM_CORE_CACHE_SLOT_QUEUE_H_
#define ENGRAM_CORE_CACHE_SLOT_QUEUE_H_

#include <cstdint>

#include "core/base/check.h"

namespace engram {

// Slots in the order in which they came, linked through `next`. Not
// synchronised.
class SlotQueue {
 public:
  explicit SlotQueue(uint32_t* next) : next_(next) {}

  uint32_t size() const { return size_; }
  // REQUIRES: size() > 0.
  uint32_t front() const { return head_; }

  void Push(uint32_t slot) {
    if (size_ == 0) {
      head_ = slot;
    } else {
      next_[tail_] = slot;
    }
    tail_ = slot;
    ++size_;
  }

  uint32_t Pop() {
    ENGRAM_CHECK(size_ > 0);
    const uint32_t slot = head_;
    head_ = next_[slot];  // of the last one, whatever: nobody reads it
    --size_;
    return slot;
  }

 private:
  uint32_t* const next_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t size_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_CACHE_SLOT_QUEUE_H_

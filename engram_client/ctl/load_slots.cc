#include "engram_client/ctl/load_slots.h"

#include "core/base/check.h"

namespace engram::ctl {

LoadSlots::LoadSlots(size_t count) {
  MutexLock lock(&mutex_);
  ring_.resize(count);
  free_.reserve(count);
  for (size_t slot = count; slot > 0; --slot) free_.push_back(slot - 1);
}

size_t LoadSlots::Take() {
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(!free_.empty());
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void LoadSlots::Free(size_t slot) {
  MutexLock lock(&mutex_);
  free_.push_back(slot);
  if (free_.size() == ring_.size()) freed_.NotifyAll();
}

void LoadSlots::QueueCheck(size_t slot) {
  bool notify = false;
  {
    MutexLock lock(&mutex_);
    ENGRAM_CHECK(count_ < ring_.size());
    ring_[(first_ + count_++) % ring_.size()] = slot;
    notify = idle_ > 0;
  }
  if (notify) queued_.NotifyOne();
}

std::optional<size_t> LoadSlots::NextToCheck() {
  MutexLock lock(&mutex_);
  while (count_ == 0) {
    if (closed_) return std::nullopt;
    ++idle_;
    queued_.Wait(&mutex_);
    --idle_;
  }
  const size_t slot = ring_[first_];
  first_ = (first_ + 1) % ring_.size();
  --count_;
  return slot;
}

void LoadSlots::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  queued_.NotifyAll();
}

void LoadSlots::WaitUntilAllFree() {
  MutexLock lock(&mutex_);
  while (free_.size() < ring_.size()) freed_.Wait(&mutex_);
}

}  // namespace engram::ctl

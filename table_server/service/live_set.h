#ifndef ENGRAM_TABLE_SERVER_SERVICE_LIVE_SET_H_
#define ENGRAM_TABLE_SERVER_SERVICE_LIVE_SET_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace engram {

// Something long-lived that a drain has to end.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  virtual void Stop() = 0;  // must not block
  virtual void Expire() {}  // drops what is past its deadline; no blocking
};

// The open streams of one kind, up to a limit.
// Thread safety: all methods may be called concurrently.
class LiveSet {
 public:
  explicit LiveSet(size_t limit) : limit_(limit) {}

  // False when the set is full.
  [[nodiscard]] bool Add(std::shared_ptr<Stoppable> entry) {
    MutexLock lock(&mutex_);
    if (entries_.size() >= limit_) return false;
    entries_.push_back(std::move(entry));
    return true;
  }

  void Remove(const Stoppable* entry) {
    std::shared_ptr<Stoppable> removed;  // destroyed after the lock is gone
    MutexLock lock(&mutex_);
    const auto found = std::find_if(
        entries_.begin(), entries_.end(),
        [&](const auto& candidate) { return candidate.get() == entry; });
    if (found == entries_.end()) return;
    removed = std::move(*found);
    entries_.erase(found);
  }

  void StopAll() {
    for (const auto& entry : Entries()) entry->Stop();
  }
  void ExpireAll() {
    for (const auto& entry : Entries()) entry->Expire();
  }

  size_t size() const {
    MutexLock lock(&mutex_);
    return entries_.size();
  }
  size_t limit() const { return limit_; }

 private:
  std::vector<std::shared_ptr<Stoppable>> Entries() const {
    MutexLock lock(&mutex_);
    return entries_;
  }

  const size_t limit_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Stoppable>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_LIVE_SET_H_

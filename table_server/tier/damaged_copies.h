#ifndef ENGRAM_TABLE_SERVER_TIER_DAMAGED_COPIES_H_
#define ENGRAM_TABLE_SERVER_TIER_DAMAGED_COPIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/mutex.h"

namespace engram {

// Partitions whose copy in a local store is known not to be what was put, until
// it is replaced or gone: found as their rows were fetched, or as they were
// loaded.
//
// Thread safety: all methods may be called concurrently.
class DamagedCopies {
 public:
  // Told of each Report, on its thread. Must not block.
  using Listener = std::function<void(const PartitionRef&)>;

  void SetListener(Listener listener) {
    MutexLock lock(&mutex_);
    listener_ = std::make_shared<const Listener>(std::move(listener));
  }

  // Rows that are asked for are damaged: somebody has to do something.
  void Report(const PartitionRef& ref) {
    std::shared_ptr<const Listener> listener;
    {
      MutexLock lock(&mutex_);
      Insert(ref);
      listener = listener_;
    }
    if (listener != nullptr) (*listener)(ref);
  }
  // Whoever adds it does what is to be done.
  void Add(const PartitionRef& ref) {
    MutexLock lock(&mutex_);
    Insert(ref);
  }
  void Erase(const PartitionRef& ref) {
    MutexLock lock(&mutex_);
    refs_.erase(ref);
  }
  bool Has(const PartitionRef& ref) const {
    MutexLock lock(&mutex_);
    return refs_.contains(ref);
  }
  std::vector<PartitionRef> List() const {
    MutexLock lock(&mutex_);
    return {refs_.begin(), refs_.end()};
  }
  uint64_t found() const {  // since the start
    MutexLock lock(&mutex_);
    return found_;
  }

 private:
  void Insert(const PartitionRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (refs_.insert(ref).second) ++found_;
  }

  mutable Mutex mutex_;
  std::set<PartitionRef> refs_ ABSL_GUARDED_BY(mutex_);
  uint64_t found_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Listener> listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_DAMAGED_COPIES_H_

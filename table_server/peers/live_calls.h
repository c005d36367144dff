#ifndef ENGRAM_TABLE_SERVER_PEERS_LIVE_CALLS_H_
#define ENGRAM_TABLE_SERVER_PEERS_LIVE_CALLS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace engram {

// A call on a completion queue.
class LiveCall {
 public:
  virtual ~LiveCall() = default;
  virtual void Cancel() = 0;  // it ends soon; must not block
};

// The calls that have not ended, from before they start. Calls share it, as the
// last of them may still be leaving it when all have ended.
//
// Thread safety: all methods may be called concurrently.
class LiveCalls {
 public:
  // False, and the call must not start, once CancelAllAndWait has begun.
  [[nodiscard]] bool Add(std::shared_ptr<LiveCall> call) {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    calls_.push_back(std::move(call));
    return true;
  }

  // The last thing that a call does.
  void Remove(const LiveCall* call) {
    std::shared_ptr<LiveCall> removed;  // destroyed after the lock is gone
    MutexLock lock(&mutex_);
    const auto found = std::find_if(
        calls_.begin(), calls_.end(),
        [&](const auto& candidate) { return candidate.get() == call; });
    if (found == calls_.end()) return;
    removed = std::move(*found);
    calls_.erase(found);
    changed_.NotifyAll();
  }

  void CancelAllAndWait() {
    std::vector<std::shared_ptr<LiveCall>> calls;
    {
      MutexLock lock(&mutex_);
      closed_ = true;
      calls = calls_;
    }
    for (const auto& call : calls) call->Cancel();
    calls.clear();
    MutexLock lock(&mutex_);
    while (!calls_.empty()) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<LiveCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_LIVE_CALLS_H_

#ifndef ENGRAM_CORE_BASE_THREAD_POOL_H_
#define ENGRAM_CORE_BASE_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace engram {

// A fixed number of threads over one bounded queue. Urgent tasks go before the
// others; one of those goes in between after many urgent ones in a row.
//
// Thread safety: all methods may be called concurrently. The destructor runs
// what is queued, then joins; nothing may be added while it runs.
class ThreadPool {
 public:
  struct Options {
    size_t thread_count = 0;  // 0: one for each core
    size_t max_queued = 65536;
  };

  enum class Urgency { kNormal, kUrgent };

  explicit ThreadPool(const Options& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Queues `task`. False, and the task is dropped, when the queue is full.
  [[nodiscard]] bool TryAdd(absl::AnyInvocable<void()> task,
                            Urgency urgency = Urgency::kNormal);

  // Runs body(i) for i in [0, count) on the pool and on the calling thread and
  // returns when all are done. May be called from a task of this pool.
  void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> body);

  size_t thread_count() const { return threads_.size(); }
  size_t queued() const;

 private:
  using Task = absl::AnyInvocable<void()>;

  void Work();
  size_t Queued() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return urgent_.size() + queue_.size();
  }
  // REQUIRES: there is one.
  Task TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_queued_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Task> urgent_ ABSL_GUARDED_BY(mutex_);
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  uint32_t urgent_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_THREAD_POOL_H_

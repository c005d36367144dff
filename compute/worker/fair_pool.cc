#include "compute/worker/fair_pool.h"

#include <utility>

namespace engram {

FairPool::FairPool(ThreadPool* pool, size_t max_queued,
                   prometheus::Gauge* queued)
    : pool_(pool), queue_(std::make_shared<Queue>(max_queued, queued)) {}

FairShare::Verdict FairPool::Add(const CallerId& caller, FairQueue::Task task) {
  // A turn that comes at once waits for the lock, and so for its task.
  MutexLock lock(&queue_->mutex);
  const auto verdict = queue_->tasks.Judge(caller);
  if (verdict != FairShare::Verdict::kTaken) return verdict;
  if (!pool_->TryAdd([queue = queue_] { queue->RunNext(); })) {
    return FairShare::Verdict::kFull;
  }
  queue_->tasks.Push(caller, std::move(task));
  queue_->gauge->Set(static_cast<double>(queue_->tasks.size()));
  return verdict;
}

void FairPool::Queue::RunNext() {
  FairQueue::Task task;
  {
    MutexLock lock(&mutex);
    task = tasks.Pop();
    gauge->Set(static_cast<double>(tasks.size()));
  }
  task();
}

}  // namespace engram

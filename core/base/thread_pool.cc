#include "core/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace engram {
namespace {

// Shared by the caller of ParallelFor and its helpers. A helper that starts
// after the last index was taken touches only `next`, so the block outlives
// the call by reference count.
struct ParallelLoop {
  ParallelLoop(size_t count, absl::FunctionRef<void(size_t)> body)
      : count(count), body(body) {}

  void Run() {
    size_t finished = 0;
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      body(i);
      ++finished;
    }
    if (finished == 0) return;
    MutexLock lock(&mutex);
    done += finished;
    if (done == count) all_done.NotifyAll();
  }

  void WaitForAll() {
    MutexLock lock(&mutex);
    while (done < count) all_done.Wait(&mutex);
  }

  const size_t count;
  const absl::FunctionRef<void(size_t)> body;
  std::atomic<size_t> next{0};
  Mutex mutex;
  CondVar all_done;
  size_t done ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace

ThreadPool::ThreadPool(const Options& options)
    : max_queued_(options.max_queued) {
  const size_t count =
      options.thread_count > 0
          ? options.thread_count
          : std::max<size_t>(1, std::thread::hardware_concurrency());
  threads_.reserve(count);
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::TryAdd(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
  if (queue_.size() >= max_queued_) return false;
  queue_.push_back(std::move(task));
  changed_.NotifyOne();
  return true;
}

void ThreadPool::ParallelFor(size_t count,
                             absl::FunctionRef<void(size_t)> body) {
  if (count == 0) return;
  if (count == 1) return body(0);
  auto loop = std::make_shared<ParallelLoop>(count, body);
  const size_t helpers = std::min(count - 1, threads_.size());
  for (size_t i = 0; i < helpers; ++i) {
    // A full queue only means less help: this thread does the rest. Behind a
    // task for every thread help would come too late and crowd out others.
    if (queued() >= threads_.size()) break;
    if (!TryAdd([loop] { loop->Run(); })) break;
  }
  loop->Run();
  loop->WaitForAll();
}

size_t ThreadPool::queued() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

void ThreadPool::Work() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace engram

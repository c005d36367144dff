#include "core/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace engram {
namespace {

// While others wait.
constexpr uint32_t kMaxUrgentInARow = 64;

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

bool ThreadPool::TryAdd(Task task, Urgency urgency) {
  MutexLock lock(&mutex_);
  if (Queued() >= max_queued_) return false;
  (urgency == Urgency::kUrgent ? urgent_ : queue_).push_back(std::move(task));
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
  return Queued();
}

ThreadPool::Task ThreadPool::TakeNext() {
  const bool urgent = queue_.empty() ||
                      (!urgent_.empty() && urgent_in_a_row_ < kMaxUrgentInARow);
  urgent_in_a_row_ = urgent ? urgent_in_a_row_ + 1 : 0;
  std::deque<Task>& from = urgent ? urgent_ : queue_;
  Task task = std::move(from.front());
  from.pop_front();
  return task;
}

void ThreadPool::Work() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (Queued() == 0 && !stopping_) changed_.Wait(&mutex_);
      if (Queued() == 0) return;
      task = TakeNext();
    }
    task();
  }
}

}  // namespace engram

#include "core/rpc/queue_loop.h"

#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "absl/time/clock.h"

namespace engram {
namespace {

// Events and urgent tasks in a row while other tasks wait.
constexpr int kMaxBeforeTask = 64;

// Calls end soon once they are cancelled; what takes longer is told.
constexpr absl::Duration kHoldsAreSlow = absl::Seconds(10);

thread_local const QueueLoop* loop_of_this_thread = nullptr;

// Best effort: a loop that runs elsewhere is only slower.
void StayOn(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

gpr_timespec NoWait() { return gpr_time_0(GPR_CLOCK_MONOTONIC); }

}  // namespace

QueueLoop::QueueLoop(std::unique_ptr<grpc::CompletionQueue> queue,
                     Options options)
    : queue_(std::move(queue)), options_(std::move(options)) {
  for (size_t i = 0; i < options_.thread_count; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

QueueLoop::~QueueLoop() { Stop(); }

bool QueueLoop::OnLoopThread() const { return loop_of_this_thread == this; }

bool QueueLoop::Defer(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
  return Add(deferred_, std::move(task));
}

bool QueueLoop::DeferUrgent(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
  if (!Add(urgent_, std::move(task))) return false;
  urgent_count_.fetch_add(1);
  return true;
}

bool QueueLoop::Add(Tasks& tasks, absl::AnyInvocable<void()> task) {
  if (stopping_) return false;
  tasks.push_back(std::move(task));
  const size_t waiting = deferred_count_.fetch_add(1) + 1;
  // A thread of the loop comes to its own task by itself.
  if (!OnLoopThread() || waiting > 1) Wake();
  return true;
}

void QueueLoop::Wake() {
  // Whoever goes to sleep counts itself first and looks at the count of tasks
  // then: one of both sides sees the other.
  if (waking_ || sleeping_.load() == 0) return;
  waking_ = true;
  alarm_.Set(queue_.get(), gpr_time_0(GPR_CLOCK_MONOTONIC), woken_.tag());
}

void QueueLoop::OnWoken(bool) {
  MutexLock lock(&mutex_);
  waking_ = false;
  if (deferred_.size() + urgent_.size() > 1 && !stopping_) Wake();
}

void QueueLoop::Stop() {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
    while (holds_ > 0) {
      if (released_.WaitFor(&mutex_, kHoldsAreSlow) || holds_ == 0) continue;
      spdlog::warn("a queue cannot end yet: {} calls hold it", holds_);
    }
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

void QueueLoop::AddHold() {
  MutexLock lock(&mutex_);
  ++holds_;
}

// Told under the lock: Stop may end the loop as soon as it has that.
void QueueLoop::RemoveHold() {
  MutexLock lock(&mutex_);
  if (--holds_ == 0) released_.NotifyAll();
}

bool QueueLoop::RunOneDeferred(bool urgent_first) {
  absl::AnyInvocable<void()> task;
  bool urgent = false;
  {
    MutexLock lock(&mutex_);
    urgent = !urgent_.empty() && (urgent_first || deferred_.empty());
    Tasks& tasks = urgent ? urgent_ : deferred_;
    if (tasks.empty()) return true;
    task = std::move(tasks.front());
    tasks.pop_front();
    if (urgent) urgent_count_.fetch_sub(1);
    deferred_count_.fetch_sub(1);
  }
  task();
  return !urgent;
}

bool QueueLoop::Spin(QueueEvent** event, bool* ok) {
  const absl::Time until = absl::Now() + options_.spin;
  void* tag = nullptr;
  do {
    if (queue_->AsyncNext(&tag, ok, NoWait()) ==
        grpc::CompletionQueue::GOT_EVENT) {
      *event = static_cast<QueueEvent*>(tag);
      return true;
    }
  } while (deferred_count_.load() == 0 && absl::Now() < until);
  return false;
}

bool QueueLoop::NextEvent(QueueEvent** event, bool* ok) {
  void* tag = nullptr;
  if (deferred_count_.load() > 0) {
    const auto next = queue_->AsyncNext(&tag, ok, NoWait());
    *event = next == grpc::CompletionQueue::GOT_EVENT
                 ? static_cast<QueueEvent*>(tag)
                 : nullptr;
    return next != grpc::CompletionQueue::SHUTDOWN;
  }
  if (options_.spin > absl::ZeroDuration() && !spinning_.exchange(true)) {
    const bool found = Spin(event, ok);
    spinning_.store(false);
    if (found) return true;
  }
  sleeping_.fetch_add(1);
  if (deferred_count_.load() > 0) {
    sleeping_.fetch_sub(1);
    *event = nullptr;
    return true;
  }
  const bool more = queue_->Next(&tag, ok);
  sleeping_.fetch_sub(1);
  *event = more ? static_cast<QueueEvent*>(tag) : nullptr;
  return more;
}

void QueueLoop::Run() {
  loop_of_this_thread = this;
  StayOn(options_.cpus);
  int since_task = 0;
  QueueEvent* event = nullptr;
  bool ok = false;
  while (NextEvent(&event, &ok)) {
    if (event != nullptr) {
      event->OnQueueEvent(ok);
      if (++since_task < kMaxBeforeTask && urgent_count_.load() == 0) continue;
    }
    since_task =
        RunOneDeferred(since_task < kMaxBeforeTask) ? 0 : since_task + 1;
  }
  while (deferred_count_.load() > 0) RunOneDeferred(/*urgent_first=*/true);
}

}  // namespace engram

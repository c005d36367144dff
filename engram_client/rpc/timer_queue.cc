#include "engram_client/rpc/timer_queue.h"

#include <chrono>
#include <utility>

namespace engram {

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

TimerQueue::TimerQueue(absl::Time (*wall_clock)())
    : wall_clock_(wall_clock), thread_([this] { Run(); }) {}

TimerQueue::~TimerQueue() { Stop(); }

TimerQueue::Timer TimerQueue::Schedule(absl::Time when, Task task) {
  const absl::Duration delay = when - wall_clock_();
  const absl::Time steady_when = SteadyNow() + delay;
  MutexLock lock(&mutex_);
  if (stopping_) return {};
  const Timer timer{steady_when, ++last_sequence_};
  tasks_.emplace(timer, std::move(task));
  if (steady_when < sleeps_until_) changed_.NotifyOne();
  return timer;
}

void TimerQueue::Cancel(const Timer& timer) {
  if (timer.sequence == 0) return;
  Task dropped;  // its captures are released after the lock
  MutexLock lock(&mutex_);
  const auto found = tasks_.find(timer);
  if (found == tasks_.end()) return;
  dropped = std::move(found->second);
  tasks_.erase(found);
}

void TimerQueue::Stop() {
  std::map<Timer, Task> dropped;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void TimerQueue::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        const absl::Duration left =
            tasks_.empty() ? absl::InfiniteDuration()
                           : tasks_.begin()->first.when - SteadyNow();
        if (left <= absl::ZeroDuration()) break;
        // Timers that are cancelled do not wake the thread, nor do later ones:
        // with a timer for each gather it would hardly sleep.
        sleeps_until_ = tasks_.empty() ? absl::InfiniteFuture()
                                       : tasks_.begin()->first.when;
        changed_.WaitFor(&mutex_, left);
        sleeps_until_ = absl::InfinitePast();
      }
      if (stopping_) return;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

}  // namespace engram

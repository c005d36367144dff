#include "engram_client/rpc/timer_queue.h"

#include <algorithm>
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
  return ScheduleSteady(SteadyNow() + delay, std::move(task));
}

TimerQueue::Timer TimerQueue::ScheduleSteady(absl::Time when, Task task) {
  MutexLock lock(&mutex_);
  if (stopping_) return {};
  const Timer timer{when, ++last_sequence_};
  tasks_.emplace(timer, std::move(task));
  const absl::Duration delay = when - SteadyNow();
  if (delay >= kShortestPolled && delay <= kLongestPolled) {
    shortest_delay_ = std::min(shortest_delay_, delay);
  }
  if (when < sleeps_until_) changed_.NotifyOne();
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
      while (!stopping_ &&
             (tasks_.empty() || tasks_.begin()->first.when > SteadyNow())) {
        Sleep();
      }
      if (stopping_) return;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

void TimerQueue::Sleep() {
  // Somewhat less than the delay, since delays differ.
  const absl::Duration wanted = shortest_delay_ * 0.75;
  poll_period_ = std::min(poll_period_, wanted);
  if (++polls_ >= kPolls) {
    polls_ = 0;
    poll_period_ = wanted;
    shortest_delay_ = absl::InfiniteDuration();
  }
  const absl::Time now = SteadyNow();
  sleeps_until_ = now + poll_period_;
  if (!tasks_.empty()) {
    sleeps_until_ = std::min(sleeps_until_, tasks_.begin()->first.when);
  }
  changed_.WaitFor(&mutex_, sleeps_until_ - now);
  sleeps_until_ = absl::InfinitePast();
}

}  // namespace engram

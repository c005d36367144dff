#ifndef ENGRAM_ENGRAM_CLIENT_RPC_TIMER_QUEUE_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_TIMER_QUEUE_H_

#include <cstdint>
#include <map>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// Time on the steady clock, which starts anywhere and which nobody sets.
absl::Time SteadyNow();

// One thread that runs tasks at their time: deadlines, hedges, retries,
// reconnects, and callbacks that must not run on a caller's thread. Tasks must
// not block. A time is turned into a delay when it is scheduled: from then on,
// setting the wall clock moves no task.
//
// Nearly all timers are cancelled, since nearly all gathers end in time. To
// wake the thread for each would cost more than the rest of it: so while short
// timers come one after another, it wakes up by itself as often as the shortest
// of them asks for, and finds the others before they are due.
//
// Thread safety: all methods may be called concurrently. A task keeps alive
// what it uses: Cancel and Stop do not wait for one that runs (Stop joins).
class TimerQueue {
 public:
  struct Timer {
    absl::Time when;        // on the steady clock
    uint64_t sequence = 0;  // 0: none

    friend auto operator<=>(const Timer& a, const Timer& b) {
      if (a.when < b.when) return std::strong_ordering::less;
      if (b.when < a.when) return std::strong_ordering::greater;
      return a.sequence <=> b.sequence;
    }
  };
  using Task = absl::AnyInvocable<void()>;

  // `wall_clock` says what time it is now.
  explicit TimerQueue(absl::Time (*wall_clock)() = absl::Now);
  ~TimerQueue();  // Stop
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // After Stop the task is dropped.
  Timer Schedule(absl::Time when, Task task);
  // `when`: on the steady clock.
  Timer ScheduleSteady(absl::Time when, Task task);
  // Before all that is scheduled, in the order posted.
  void Post(Task task) { Schedule(absl::InfinitePast(), std::move(task)); }
  // Drops the task unless it has started.
  void Cancel(const Timer& timer);

  bool OnTimerThread() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

  // Drops what has not started and joins. REQUIRES: not on the timer thread.
  void Stop();

 private:
  // Polling stops when there were so many polls and nothing was scheduled, and
  // its period is chosen anew.
  static constexpr uint32_t kPolls = 8;
  // Delays that polls can serve.
  static constexpr absl::Duration kShortestPolled = absl::Microseconds(500);
  static constexpr absl::Duration kLongestPolled = absl::Milliseconds(100);

  void Run();
  // Until the first task, a poll or a change.
  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Time (*const wall_clock_)();
  Mutex mutex_;
  CondVar changed_;
  std::map<Timer, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // When the thread wakes up by itself; the past while it is awake.
  absl::Time sleeps_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration poll_period_ ABSL_GUARDED_BY(mutex_) =
      absl::InfiniteDuration();
  // Since the period was chosen.
  absl::Duration shortest_delay_ ABSL_GUARDED_BY(mutex_) =
      absl::InfiniteDuration();
  uint32_t polls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_TIMER_QUEUE_H_

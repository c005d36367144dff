#include "table_server/store/deadline_watch.h"

#include <algorithm>

namespace engram {
namespace {

// A clock that is not the machine's may be there before.
constexpr absl::Duration kLongestWait = absl::Milliseconds(50);

}  // namespace

DeadlineWatch::DeadlineWatch(const Clock& clock)
    : clock_(clock), thread_([this] { Watch(); }) {}

DeadlineWatch::~DeadlineWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

DeadlineWatch::Ticket DeadlineWatch::Add(absl::Time deadline, Task late) {
  MutexLock lock(&mutex_);
  const Ticket ticket(deadline, ++added_);
  tasks_.emplace(ticket, std::move(late));
  if (tasks_.begin()->first == ticket) changed_.NotifyOne();
  return ticket;
}

bool DeadlineWatch::Forget(const Ticket& ticket) {
  Task forgotten;  // destroyed after the lock
  MutexLock lock(&mutex_);
  const auto found = tasks_.find(ticket);
  if (found == tasks_.end()) return false;
  forgotten = std::move(found->second);
  tasks_.erase(found);
  return true;
}

bool DeadlineWatch::WaitForDue() {
  while (true) {
    const bool has_one = !tasks_.empty();
    const absl::Duration left = has_one
                                    ? tasks_.begin()->first.first - clock_.Now()
                                    : absl::InfiniteDuration();
    if (has_one && left <= absl::ZeroDuration()) return true;
    if (stopping_) return false;
    if (left == absl::InfiniteDuration()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitFor(&mutex_, std::min(left, kLongestWait));
    }
  }
}

void DeadlineWatch::Watch() {
  while (true) {
    Task due;
    {
      MutexLock lock(&mutex_);
      if (!WaitForDue()) return;
      due = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    due();
  }
}

}  // namespace engram

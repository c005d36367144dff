#ifndef ENGRAM_TABLE_SERVER_STORE_DEADLINE_WATCH_H_
#define ENGRAM_TABLE_SERVER_STORE_DEADLINE_WATCH_H_

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace engram {

// A thread that tells those who wait for others that their time is over.
//
// Thread safety: all methods may be called concurrently. The destructor runs
// what is due and forgets the rest; nothing may be added while it runs.
class DeadlineWatch {
 public:
  using Task = absl::AnyInvocable<void()>;  // must not block
  using Ticket = std::pair<absl::Time, uint64_t>;

  // `clock` must outlive it.
  explicit DeadlineWatch(const Clock& clock);
  ~DeadlineWatch();
  DeadlineWatch(const DeadlineWatch&) = delete;
  DeadlineWatch& operator=(const DeadlineWatch&) = delete;

  // Runs `late` on the thread of this once the clock is at `deadline`, or a few
  // hundredths of a second later where that does not go as the machine's.
  Ticket Add(absl::Time deadline, Task late);
  // True: it does not run, and is destroyed. False: it has been run, or is.
  bool Forget(const Ticket& ticket);

 private:
  void Watch();
  // Until something may be due; false: it is to stop, and nothing is.
  bool WaitForDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::map<Ticket, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_DEADLINE_WATCH_H_

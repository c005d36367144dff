#ifndef ENGRAM_TABLE_SERVER_STORE_READ_POOL_H_
#define ENGRAM_TABLE_SERVER_STORE_READ_POOL_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "table_server/store/deadline_watch.h"

namespace engram {

// What one fetch does, on the threads of a ReadPool.
class ReadJob {
 public:
  virtual ~ReadJob() = default;

  // Once, first: finds out what is to be read. How many reads there are.
  virtual absl::StatusOr<size_t> Plan() = 0;
  // The i-th of them, concurrently with others.
  virtual absl::Status Read(size_t i) = 0;
};

// Threads that wait for the disk, so that nobody else has to: as many reads are
// under way at once as there are threads. Reads of one job are spread over all
// threads that are idle; jobs begin in the order in which they come.
//
// Thread safety: all methods may be called concurrently. The destructor waits
// for all jobs; none may come while it runs.
class ReadPool {
 public:
  struct Options {
    size_t thread_count = 32;
    // Reads, those under way with them: a job may begin to wait while fewer
    // do, however many it has itself.
    size_t max_queued = 65536;
    const Clock* clock = &Clock::Real();
  };
  using OnDone = absl::AnyInvocable<void(absl::Status)>;

  explicit ReadPool(const Options& options);
  ~ReadPool() = default;

  // Runs `job` and tells `done`, once, on a thread of the pool: OK, the first
  // error, after which nothing of this job is begun, DEADLINE_EXCEEDED: not all
  // was begun by then, or RESOURCE_EXHAUSTED: nothing was, max_queued wait
  // already. Who has to wait for the other threads is told its deadline, or
  // that it is refused, even while all of them wait for the disk. `max_reads`
  // is the most that Plan may say. When `done` is told nothing of `job` runs.
  void Run(std::unique_ptr<ReadJob> job, size_t max_reads, absl::Time deadline,
           OnDone done);

  size_t queued() const { return queued_.load(std::memory_order_relaxed); }
  size_t max_queued() const { return options_.max_queued; }

 private:
  struct JobRun;

  bool Reserve(size_t reads);
  void Refuse(OnDone done);
  void Start(const std::shared_ptr<JobRun>& run);
  void Help(JobRun& run);
  absl::Status ReadOne(JobRun& run, size_t i);
  void Add(absl::AnyInvocable<void()> task, ThreadPool::Urgency urgency);

  const Options options_;
  std::atomic<size_t> queued_{0};
  DeadlineWatch watch_;  // of jobs that have not begun
  ThreadPool pool_;      // last: its threads use the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_READ_POOL_H_

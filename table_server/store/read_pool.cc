#include "table_server/store/read_pool.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace engram {
namespace {

// A thread that is woken for less costs more than it brings.
constexpr size_t kMinReadsPerThread = 2;

}  // namespace

// Shared by the threads that work on a job. One that comes after the last read
// was taken touches only `next` and `count`, so that nobody waits for it.
struct ReadPool::JobRun {
  std::unique_ptr<ReadJob> job;
  size_t max_reads = 0;
  absl::Time deadline;
  OnDone done;
  std::optional<DeadlineWatch::Ticket> ticket;  // while it has not begun

  size_t count = 0;
  std::atomic<size_t> next{0};
  std::atomic<size_t> ended{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status status ABSL_GUARDED_BY(mutex);

  void Fail(absl::Status why) {
    MutexLock lock(&mutex);
    if (status.ok()) status = std::move(why);
    failed.store(true, std::memory_order_relaxed);
  }
  // What job and `done` hold is let go of: helpers may keep this for a while.
  void End(absl::Status with) {
    job.reset();
    std::exchange(done, nullptr)(std::move(with));
  }
  absl::Status TakeStatus() {
    MutexLock lock(&mutex);
    return std::move(status);
  }
};

ReadPool::ReadPool(const Options& options)
    : options_(options),
      watch_(*options.clock),
      // Its bound is in reads, and what was refused has to be told.
      pool_({.thread_count = std::max<size_t>(1, options.thread_count),
             .max_queued = std::numeric_limits<size_t>::max()}) {}

void ReadPool::Add(absl::AnyInvocable<void()> task,
                   ThreadPool::Urgency urgency) {
  ENGRAM_CHECK(pool_.TryAdd(std::move(task), urgency));
}

// By what waits before it: a job as large as the bound would never be taken
// otherwise while others are out.
bool ReadPool::Reserve(size_t reads) {
  size_t before = queued_.load();
  while (before < options_.max_queued || reads == 0) {
    if (queued_.compare_exchange_weak(before, before + reads)) return true;
  }
  return false;
}

void ReadPool::Refuse(OnDone done) {
  watch_.Add(absl::InfinitePast(), [done = std::move(done),
                                    max = options_.max_queued]() mutable {
    done(absl::ResourceExhaustedError(absl::StrCat(
        max, " reads of the local store or more wait, the limit is ", max)));
  });
}

void ReadPool::Run(std::unique_ptr<ReadJob> job, size_t max_reads,
                   absl::Time deadline, OnDone done) {
  if (!Reserve(max_reads)) return Refuse(std::move(done));
  auto run = std::make_shared<JobRun>();
  run->job = std::move(job);
  run->max_reads = max_reads;
  run->deadline = deadline;
  run->done = std::move(done);
  if (deadline != absl::InfiniteFuture()) {
    run->ticket = watch_.Add(deadline, [this, run] {
      queued_.fetch_sub(run->max_reads);
      run->End(absl::DeadlineExceededError(
          "the deadline passed before the local store began to read"));
    });
  }
  Add([this, run = std::move(run)] { Start(run); },
      ThreadPool::Urgency::kNormal);
}

void ReadPool::Start(const std::shared_ptr<JobRun>& run) {
  // False: it was late, and has been told.
  if (run->ticket.has_value() && !watch_.Forget(*run->ticket)) return;
  const absl::StatusOr<size_t> count = run->job->Plan();
  run->count = count.value_or(0);
  ENGRAM_CHECK(run->count <= run->max_reads);
  queued_.fetch_sub(run->max_reads - run->count);
  if (run->count == 0) {
    run->End(count.status());
    return;
  }
  // Before other jobs that wait: what was begun first ends first. (May be added
  // while the pool is being destroyed: this thread is still at work.)
  const size_t threads =
      std::min(pool_.thread_count(),
               (run->count + kMinReadsPerThread - 1) / kMinReadsPerThread);
  for (size_t i = 1; i < threads; ++i) {
    Add([this, run] { Help(*run); }, ThreadPool::Urgency::kUrgent);
  }
  Help(*run);
}

void ReadPool::Help(JobRun& run) {
  for (size_t i = run.next.fetch_add(1); i < run.count;
       i = run.next.fetch_add(1)) {
    if (!run.failed.load(std::memory_order_relaxed)) {
      absl::Status status = ReadOne(run, i);
      if (!status.ok()) run.Fail(std::move(status));
    }
    queued_.fetch_sub(1, std::memory_order_relaxed);
    if (run.ended.fetch_add(1) + 1 == run.count) run.End(run.TakeStatus());
  }
}

absl::Status ReadPool::ReadOne(JobRun& run, size_t i) {
  if (options_.clock->Now() >= run.deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat("the deadline passed after ", run.ended.load(), " of ",
                     run.count, " reads of the local store"));
  }
  return run.job->Read(i);
}

}  // namespace engram

#ifndef ENGRAM_COMPUTE_WORKER_FAIR_POOL_H_
#define ENGRAM_COMPUTE_WORKER_FAIR_POOL_H_

#include <prometheus/gauge.h>

#include <cstddef>
#include <memory>

#include "compute/worker/caller_id.h"
#include "compute/worker/fair_queue.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"

namespace engram {

// Runs the tasks of many callers on a thread pool, in the order of a FairQueue:
// the pool's own queue has only as many turns, and which task a turn runs is
// decided when a thread is free.
//
// May go before its tasks have run. Thread safety: all methods may be called
// concurrently.
class FairPool {
 public:
  // `pool` outlives this, and `queued`, which shows how many tasks wait, the
  // pool's threads.
  FairPool(ThreadPool* pool, size_t max_queued, prometheus::Gauge* queued);

  // Unless kTaken, the task is dropped.
  [[nodiscard]] FairShare::Verdict Add(const CallerId& caller,
                                       FairQueue::Task task);

 private:
  struct Queue {
    Queue(size_t max_queued, prometheus::Gauge* gauge)
        : gauge(gauge), tasks(max_queued) {}
    void RunNext();

    prometheus::Gauge* const gauge;
    Mutex mutex;
    FairQueue tasks ABSL_GUARDED_BY(mutex);
  };

  ThreadPool* const pool_;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_FAIR_POOL_H_

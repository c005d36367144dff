#ifndef ENGRAM_TABLE_SERVER_REBALANCE_LOAD_POOL_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_LOAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "table_server/loading/partition_store.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/rebalance/pacer.h"

namespace engram {

// Threads that load what the hand-over says is to be loaded, and tend the store
// when there is nothing: as fast as they can, or paced, then others, with what
// serving leaves of the processors and no faster than the pacer allows.
//
// Thread safety: all methods may be called concurrently.
class LoadPool {
 public:
  struct Options {
    size_t thread_count = 0;  // 0: one for each core
    size_t paced_thread_count = 1;
    Pacer::Options pace;
    const Clock* clock = &Clock::Steady();
  };
  // Told on a thread of the pool of each load that ended, with no lock held;
  // not of those that the end of the pool cut short.
  using OnEnd = std::function<void(const PartitionRef&, const absl::Status&)>;

  // `hand_over` and `store` must outlive the pool. Ends of loads are told to
  // `on_end` only, whose owner tells the hand-over.
  LoadPool(HandOver& hand_over, PartitionStore& store, Options options,
           OnEnd on_end);
  ~LoadPool();  // stops loads under way soon, then joins

  LoadPool(const LoadPool&) = delete;
  LoadPool& operator=(const LoadPool&) = delete;

  void Wake();                // there may be something to load
  void SetPaced(bool paced);  // it is not at first

  // Since the start, of loads that failed too.
  uint64_t loaded_bytes() const {
    return loaded_bytes_.load(std::memory_order_relaxed);
  }
  // With those that loads which ended well had no need to read.
  uint64_t done_bytes() const {
    return loaded_bytes() + spared_bytes_.load(std::memory_order_relaxed);
  }

 private:
  void Run(size_t thread_index);
  absl::Status LoadOne(const PartitionRef& ref);
  // Waits as the pacer says for bytes read since `began`, which is then now.
  // CANCELLED when the pool ends.
  absl::Status Account(size_t bytes, absl::Time& began);
  uint64_t wakes();
  bool stopping();
  bool MayLoad(size_t thread_index);
  // Until there was another wake than `seen`, or some time passed. False: the
  // pool ends.
  bool WaitForWork(uint64_t seen);

  HandOver& hand_over_;
  PartitionStore& store_;
  const Options options_;
  const OnEnd on_end_;
  const size_t paced_count_;  // the first threads, which load when paced

  Pacer pacer_;
  std::atomic<uint64_t> loaded_bytes_{0};
  std::atomic<uint64_t> spared_bytes_{0};
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool paced_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;  // last: they use all the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_LOAD_POOL_H_

#ifndef ENGRAM_TESTS_BENCH_LOCAL_CONTESTANT_H_
#define ENGRAM_TESTS_BENCH_LOCAL_CONTESTANT_H_

#include <cstddef>
#include <memory>

#include "core/base/thread_pool.h"
#include "tests/bench/contestant.h"

namespace engram::bench {

// A contestant inside this process: a gather is a call that returns when it is
// done. With one in flight it runs on the driver's thread, with more on as
// many threads, at most one a core.
class LocalContestant : public GatherContestant {
 public:
  absl::Status Prepare(size_t max_in_flight) final;
  absl::Status Start(size_t slot, const Batch& batch,
                     absl::Span<std::byte> out) final;
  absl::StatusOr<size_t> WaitAny(absl::Time deadline) final;

 protected:
  // Thread safety: may be called concurrently.
  virtual absl::Status Gather(const Batch& batch,
                              absl::Span<std::byte> out) = 0;
  // Ends the threads: for the destructors of subclasses, whose Gather they
  // call.
  void StopThreads() { threads_ = nullptr; }

 private:
  EndedGathers ended_;
  std::unique_ptr<ThreadPool> threads_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_LOCAL_CONTESTANT_H_

#ifndef ENGRAM_COMPUTE_WORKER_FAIR_QUEUE_H_
#define ENGRAM_COMPUTE_WORKER_FAIR_QUEUE_H_

#include <cstddef>
#include <deque>
#include <unordered_map>

#include "absl/functional/any_invocable.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/fair_share.h"

namespace engram {

// Tasks of many callers: one of each in turn, those of one in order. A task
// waits for at most one of every other caller, however many these have queued.
// How many each may have is as FairShare says.
//
// Thread safety: none.
class FairQueue {
 public:
  using Task = absl::AnyInvocable<void()>;

  explicit FairQueue(size_t max_tasks) : max_tasks_(max_tasks) {}

  // Whether the caller may have one more.
  FairShare::Verdict Judge(const CallerId& caller) const;
  // REQUIRES: Judge says kTaken.
  void Push(const CallerId& caller, Task task);
  // REQUIRES: not empty.
  Task Pop();

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  using Lanes = std::unordered_map<CallerId, std::deque<Task>, CallerId::Hash>;

  const size_t max_tasks_;
  size_t size_ = 0;
  Lanes lanes_;                       // none is empty
  std::deque<Lanes::pointer> turns_;  // each of the lanes once; next is first
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_FAIR_QUEUE_H_

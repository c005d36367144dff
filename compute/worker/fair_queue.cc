#include "compute/worker/fair_queue.h"

#include <utility>

#include "core/base/check.h"

namespace engram {

FairShare::Verdict FairQueue::Judge(const CallerId& caller) const {
  const auto lane = lanes_.find(caller);
  const size_t queued = lane == lanes_.end() ? 0 : lane->second.size();
  return FairShare::Judge(queued, 1, size_, max_tasks_);
}

void FairQueue::Push(const CallerId& caller, Task task) {
  const auto [lane, is_new] = lanes_.try_emplace(caller);
  if (is_new) turns_.push_back(&*lane);
  lane->second.push_back(std::move(task));
  ++size_;
}

FairQueue::Task FairQueue::Pop() {
  ENGRAM_CHECK(!empty());
  const Lanes::pointer lane = turns_.front();
  turns_.pop_front();
  Task task = std::move(lane->second.front());
  lane->second.pop_front();
  --size_;
  if (lane->second.empty()) {
    lanes_.erase(lanes_.find(lane->first));
  } else {
    turns_.push_back(lane);
  }
  return task;
}

}  // namespace engram

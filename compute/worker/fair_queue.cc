#include "compute/worker/fair_queue.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace engram {

FairShare::Verdict FairQueue::Push(const CallerId& caller, Task task) {
  const auto lane = lanes_.find(caller);
  const size_t queued = lane == lanes_.end() ? 0 : lane->second.size();
  const auto verdict = FairShare::Judge(queued, 1, size_, max_tasks_);
  if (verdict != FairShare::Verdict::kTaken) return verdict;
  const auto added =
      lane == lanes_.end() ? lanes_.try_emplace(caller).first : lane;
  if (queued == 0) turns_.push_back(&*added);
  added->second.push_back(std::move(task));
  ++size_;
  return verdict;
}

void FairQueue::DropLast(const CallerId& caller) {
  const auto lane = lanes_.find(caller);
  ENGRAM_CHECK(lane != lanes_.end());
  lane->second.pop_back();
  --size_;
  if (!lane->second.empty()) return;
  turns_.erase(std::find(turns_.begin(), turns_.end(), &*lane));
  lanes_.erase(lane);
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

#include "table_server/rebalance/load_pool.h"

#include <algorithm>
#include <utility>

#include "core/base/thread_priority.h"
#include "core/base/thread_scratch.h"

namespace engram {
namespace {

// Failed loads come up again by time alone.
constexpr absl::Duration kLookAgain = absl::Milliseconds(200);

size_t ThreadCount(size_t wanted) {
  return wanted > 0 ? wanted
                    : std::max<size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

LoadPool::LoadPool(HandOver& hand_over, PartitionStore& store, Options options,
                   OnEnd on_end)
    : hand_over_(hand_over),
      store_(store),
      options_(std::move(options)),
      on_end_(std::move(on_end)),
      paced_count_(std::max<size_t>(1, options_.paced_thread_count)),
      pacer_(options_.pace, *options_.clock) {
  const size_t count = paced_count_ + ThreadCount(options_.thread_count);
  for (size_t i = 0; i < count; ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

LoadPool::~LoadPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void LoadPool::Wake() {
  MutexLock lock(&mutex_);
  ++wakes_;
  changed_.NotifyAll();
}

void LoadPool::SetPaced(bool paced) {
  MutexLock lock(&mutex_);
  if (std::exchange(paced_, paced) == paced) return;
  ++wakes_;
  changed_.NotifyAll();
}

uint64_t LoadPool::wakes() {
  MutexLock lock(&mutex_);
  return wakes_;
}

bool LoadPool::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

bool LoadPool::MayLoad(size_t thread_index) {
  MutexLock lock(&mutex_);
  return !stopping_ && paced_ == (thread_index < paced_count_);
}

void LoadPool::Run(size_t thread_index) {
  if (thread_index < paced_count_) LowerThreadPriority();
  uint64_t seen = 0;
  do {
    seen = wakes();
    while (MayLoad(thread_index)) {
      const auto ref = hand_over_.TakeLoad(options_.clock->Now());
      if (!ref.has_value()) break;
      const absl::Status status = LoadOne(*ref);
      if (!status.ok() && stopping()) return;
      on_end_(*ref, status);
    }
    if (MayLoad(thread_index)) store_.Tend();
    ThreadScratch::Free();
  } while (WaitForWork(seen));
}

absl::Status LoadPool::LoadOne(const PartitionRef& ref) {
  absl::Time began = options_.clock->Now();
  uint64_t read_bytes = 0;
  absl::Status status = store_.Load(ref, [&](size_t bytes) {
    read_bytes += bytes;
    return Account(bytes, began);
  });
  const uint64_t wanted_bytes = store_.BytesToLoad(ref);
  if (status.ok() && read_bytes < wanted_bytes) {
    spared_bytes_.fetch_add(wanted_bytes - read_bytes,
                            std::memory_order_relaxed);
  }
  return status;
}

absl::Status LoadPool::Account(size_t bytes, absl::Time& began) {
  loaded_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  // A source that waits does no work.
  const absl::Time until =
      paced_ && bytes > 0 ? now + pacer_.After(bytes, now - began) : now;
  while (!stopping_ && paced_ && options_.clock->Now() < until) {
    changed_.WaitFor(&mutex_, until - options_.clock->Now());
  }
  began = options_.clock->Now();
  if (!stopping_) return absl::OkStatus();
  return absl::CancelledError("loading was stopped");
}

bool LoadPool::WaitForWork(uint64_t seen) {
  MutexLock lock(&mutex_);
  if (!stopping_ && wakes_ == seen) changed_.WaitFor(&mutex_, kLookAgain);
  return !stopping_;
}

}  // namespace engram

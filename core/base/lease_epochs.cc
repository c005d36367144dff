#include "core/base/lease_epochs.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/thread_number.h"

namespace engram {
namespace {

constexpr absl::Duration kFirstPoll = absl::Microseconds(50);
constexpr absl::Duration kLongestPoll = absl::Milliseconds(5);

}  // namespace

LeaseEpochs::~LeaseEpochs() { ENGRAM_CHECK(active() == 0); }

LeaseEpochs::Lease LeaseEpochs::Take() const {
  Stripe& stripe = stripes_[ThreadNumber() % kStripes];
  // One that is out of date only makes the other epoch take longer.
  const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  std::atomic<int64_t>& count = stripe.counts[epoch % 2];
  count.fetch_add(1, std::memory_order_seq_cst);
  return Lease(&count);
}

LeaseEpochs::Mark LeaseEpochs::TakeMark() {
  MutexLock lock(&mutex_);
  // Counters of both kinds have to be looked at from now on, all of them.
  const uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  const uint64_t mark = epoch + (empty_stripes_ == 0 ? 2 : 3);
  AdvanceTo(mark);  // so that later leases are of a later epoch, if may be
  return Mark{mark};
}

bool LeaseEpochs::Ended(Mark mark) {
  MutexLock lock(&mutex_);
  return AdvanceTo(static_cast<uint64_t>(mark));
}

bool LeaseEpochs::AdvanceTo(uint64_t wanted) {
  uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  for (; epoch < wanted; epoch_.store(++epoch, std::memory_order_relaxed)) {
    for (; empty_stripes_ < kStripes; ++empty_stripes_) {
      const auto& count = stripes_[empty_stripes_].counts[(epoch + 1) % 2];
      if (count.load(std::memory_order_seq_cst) != 0) return false;
    }
    empty_stripes_ = 0;
  }
  return true;
}

bool LeaseEpochs::WaitUntilEnded(Mark mark, absl::Time deadline) {
  absl::Duration poll = kFirstPoll;
  while (!Ended(mark)) {
    const absl::Time now = absl::Now();
    if (now >= deadline) return false;
    absl::SleepFor(std::min(poll, deadline - now));
    poll = std::min(2 * poll, kLongestPoll);
  }
  return true;
}

uint64_t LeaseEpochs::active() const {
  int64_t leases = 0;
  for (const Stripe& stripe : stripes_) {
    for (const auto& count : stripe.counts) {
      leases += count.load(std::memory_order_relaxed);
    }
  }
  return static_cast<uint64_t>(leases);
}

}  // namespace engram

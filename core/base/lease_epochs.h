#ifndef ENGRAM_CORE_BASE_LEASE_EPOCHS_H_
#define ENGRAM_CORE_BASE_LEASE_EPOCHS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// Lets an owner take something away from readers that never wait for it.
//
// A reader takes a lease, then asks whether the thing is there, and uses it
// until the lease ends. The owner makes it absent, then takes a mark, and may
// destroy it once the leases from before the mark have ended: a later one finds
// it absent. The reader's question and the owner's answer are one atomic that
// both access with memory_order_seq_cst; what a reader did under its lease
// happens before the owner hears that it has ended.
//
// Why that is enough. A lease adds 1 to a counter and, when it ends, takes it
// off again; a mark is over when every counter was found to be 0 after it was
// taken. Take a reader that the owner did not wait for, and the moment when the
// owner found 0 in that reader's counter. If the reader had added its 1 before,
// it had also taken it off, by a release that the owner's load acquired: it was
// done. Otherwise, in the single order of all seq_cst operations, the owner's
// change came before the owner's load of 0, that before the reader's addition,
// and that before the reader's question: it found the thing absent.
//
// A counter is of few threads and of every other epoch. Leases go to the
// counters of the current epoch while those of the other run empty, so that a
// mark ends although new leases never cease; the proof needs no epochs.
//
// Thread safety: all methods may be called concurrently. Take and the end of a
// lease are wait-free, one atomic addition each in a cache line that few
// threads share; the rest locks.
class LeaseEpochs {
 public:
  // Move-only; ends with the object, on any thread. No lease outlives its
  // LeaseEpochs.
  class Lease {
   public:
    Lease() = default;
    ~Lease() { End(); }
    Lease(Lease&& other) noexcept
        : count_(std::exchange(other.count_, nullptr)) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        End();
        count_ = std::exchange(other.count_, nullptr);
      }
      return *this;
    }

    // Before its time; again: nothing.
    void End() {
      std::atomic<int64_t>* const count = std::exchange(count_, nullptr);
      if (count != nullptr) count->fetch_sub(1, std::memory_order_release);
    }

   private:
    friend class LeaseEpochs;
    explicit Lease(std::atomic<int64_t>* count) : count_(count) {}

    std::atomic<int64_t>* count_ = nullptr;
  };

  // A moment. Marks of one LeaseEpochs grow.
  enum class Mark : uint64_t {};

  LeaseEpochs() = default;
  ~LeaseEpochs();
  LeaseEpochs(const LeaseEpochs&) = delete;
  LeaseEpochs& operator=(const LeaseEpochs&) = delete;

  Lease Take() const;

  Mark TakeMark();
  // Whether every lease from before `mark` has ended. Does not wait. Leases
  // from after it may delay that, though never for good, however many come.
  bool Ended(Mark mark);
  // Waits until then; false: not by `deadline`. Polls: leases wake nobody.
  bool WaitUntilEnded(Mark mark, absl::Time deadline);

  // Leases there are. They may begin and end meanwhile.
  uint64_t active() const;

 private:
  static constexpr size_t kStripes = 64;
  // Two lines: some CPUs fetch them in pairs.
  static constexpr size_t kStripeBytes = 128;

  struct alignas(kStripeBytes) Stripe {
    std::array<std::atomic<int64_t>, 2> counts{};  // [epoch % 2]
  };

  // Goes on to `wanted`, as far as counters are empty; true: it got there.
  bool AdvanceTo(uint64_t wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::array<Stripe, kStripes> stripes_;
  std::atomic<uint64_t> epoch_{0};  // written under mutex_

  Mutex mutex_;
  // Of the other epoch's counters, how many were 0 since this epoch began.
  size_t empty_stripes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_LEASE_EPOCHS_H_

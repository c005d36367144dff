#ifndef ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_
#define ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/wire/gather_size.h"
#include "table_server/service/gather_pace.h"

namespace engram {

// Bounds how many gathers are in flight and how many bytes they hold. An eighth
// of both is for small ones alone: decode goes on under a flood of prefill.
// Under a flood, large ones that would not be in time are not let in at all.
// Thread safety: all methods may be called concurrently.
class Admission {
 public:
  struct Options {
    uint64_t max_gathers = 256;
    uint64_t max_bytes = uint64_t{1} << 30;
    uint64_t small_bytes =
        kSmallGatherBytes;  // gathers that ask for more are large
    absl::Duration retry_after = absl::Milliseconds(20);

    // What large gathers may use.
    uint64_t max_large_gathers() const {
      return std::max<uint64_t>(1, max_gathers - (max_gathers + 7) / 8);
    }
    uint64_t max_large_bytes() const { return max_bytes - (max_bytes + 7) / 8; }
  };
  struct Usage {
    uint64_t gathers = 0;
    uint64_t bytes = 0;
  };

  // What one gather holds; gives it back when destroyed. Move-only. Must not
  // outlive the Admission.
  class Ticket {
   public:
    Ticket() = default;
    ~Ticket() { Release(); }
    Ticket(Ticket&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)),
          holds_(other.holds_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      if (this == &other) return *this;
      Release();
      admission_ = std::exchange(other.admission_, nullptr);
      holds_ = other.holds_;
      return *this;
    }

   private:
    friend class Admission;
    struct Holds {
      uint64_t bytes = 0;
      uint64_t asked_bytes = 0;
      uint64_t in_flight_bytes = 0;  // asked for by all, when it came
      bool large = false;
    };
    Ticket(Admission* admission, const Holds& holds)
        : admission_(admission), holds_(holds) {}
    void Release();

    Admission* admission_ = nullptr;
    Holds holds_;
  };

  explicit Admission(const Options& options) : options_(options) {}

  // For a gather that holds `bytes`. `asked_bytes`: all that it asks for, which
  // is more where only a part is held at a time. `left`: until its deadline.
  // OVERLOADED with RetryInfo when a bound would be passed, or the deadline
  // would before it was done.
  absl::StatusOr<Ticket> Enter(uint64_t bytes, uint64_t asked_bytes,
                               absl::Duration left = absl::InfiniteDuration());
  absl::StatusOr<Ticket> Enter(uint64_t bytes) { return Enter(bytes, bytes); }
  // The gather of this ticket, which it still has, was done after `time`.
  void Took(const Ticket& ticket, absl::Duration time);
  // A gather that waits for rows from elsewhere works on no thread: from Paused
  // to Resumed it makes no other look slow. REQUIRES: it has the ticket still.
  void Paused(const Ticket& ticket);
  void Resumed(const Ticket& ticket);
  // As GatherPace.
  void AddThread();

  Usage usage() const;        // of all gathers
  Usage large_usage() const;  // of the large ones among them
  const Options& options() const { return options_; }

 private:
  absl::Duration Expected(uint64_t asked_bytes, bool large) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Overloaded(const char* kind, const Usage& usage,
                          const Usage& limit, uint64_t bytes) const;
  absl::Status TooLate(const Usage& large_usage, absl::Duration expected,
                       absl::Duration left) const;

  const Options options_;
  mutable Mutex mutex_;
  Usage usage_ ABSL_GUARDED_BY(mutex_);
  Usage large_usage_ ABSL_GUARDED_BY(mutex_);
  // By all gathers but those that are paused.
  uint64_t asked_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  GatherPace pace_ ABSL_GUARDED_BY(mutex_);  // of the large ones
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

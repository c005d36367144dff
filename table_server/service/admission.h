#ifndef ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_
#define ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/wire/gather_size.h"

namespace engram {

// Bounds how many gathers are in flight and how many bytes they hold. An eighth
// of both is for small ones alone: decode goes on under a flood of prefill.
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
          bytes_(other.bytes_),
          large_(other.large_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      if (this == &other) return *this;
      Release();
      admission_ = std::exchange(other.admission_, nullptr);
      bytes_ = other.bytes_;
      large_ = other.large_;
      return *this;
    }

   private:
    friend class Admission;
    Ticket(Admission* admission, uint64_t bytes, bool large)
        : admission_(admission), bytes_(bytes), large_(large) {}
    void Release();

    Admission* admission_ = nullptr;
    uint64_t bytes_ = 0;
    bool large_ = false;
  };

  explicit Admission(const Options& options) : options_(options) {}

  // For a gather that holds `bytes`. `asked_bytes`: all that it asks for, which
  // is more where only a part is held at a time. OVERLOADED with RetryInfo when
  // a bound would be passed.
  absl::StatusOr<Ticket> Enter(uint64_t bytes, uint64_t asked_bytes);
  absl::StatusOr<Ticket> Enter(uint64_t bytes) { return Enter(bytes, bytes); }

  Usage usage() const;        // of all gathers
  Usage large_usage() const;  // of the large ones among them
  const Options& options() const { return options_; }

 private:
  absl::Status Overloaded(const char* kind, const Usage& usage,
                          const Usage& limit, uint64_t bytes) const;

  const Options options_;
  mutable Mutex mutex_;
  Usage usage_ ABSL_GUARDED_BY(mutex_);
  Usage large_usage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

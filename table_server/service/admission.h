#ifndef ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_
#define ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// Bounds how many gathers are in flight and how many bytes they hold.
// Thread safety: all methods may be called concurrently.
class Admission {
 public:
  struct Options {
    uint64_t max_gathers = 256;
    uint64_t max_bytes = uint64_t{1} << 30;
    absl::Duration retry_after = absl::Milliseconds(20);
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
          bytes_(other.bytes_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      if (this == &other) return *this;
      Release();
      admission_ = std::exchange(other.admission_, nullptr);
      bytes_ = other.bytes_;
      return *this;
    }

   private:
    friend class Admission;
    Ticket(Admission* admission, uint64_t bytes)
        : admission_(admission), bytes_(bytes) {}
    void Release();

    Admission* admission_ = nullptr;
    uint64_t bytes_ = 0;
  };

  explicit Admission(const Options& options) : options_(options) {}

  // OVERLOADED with RetryInfo when either bound would be passed.
  absl::StatusOr<Ticket> Enter(uint64_t bytes);

  Usage usage() const;
  const Options& options() const { return options_; }

 private:
  const Options options_;
  mutable Mutex mutex_;
  Usage usage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_ADMISSION_H_

#ifndef ENGRAM_CORE_HTTP_HTTP_COUNTS_H_
#define ENGRAM_CORE_HTTP_HTTP_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace engram {

// Why a request brought less than it asked for.
enum class HttpFailure {
  kConnection,   // none, or one that broke
  kStalled,      // next to nothing came
  kBusy,         // 429, 503
  kServerError,  // another 5xx
  kDenied,       // 401, 403, 404 and other refusals
  kNoRanges,     // the whole file was offered for a range
  kWrongRange,   // other bytes than those asked for, or another file
};
inline constexpr size_t kHttpFailureCount = 7;
inline constexpr std::array<const char*, kHttpFailureCount> kHttpFailureNames =
    {"connection", "stalled",   "busy",       "server_error",
     "denied",     "no_ranges", "wrong_range"};

// Since the start.
struct HttpCounts {
  uint64_t requests = 0;
  uint64_t received_bytes = 0;
  uint64_t retries = 0;
  std::array<uint64_t, kHttpFailureCount> failures{};
};

// Counts that many threads add to.
class HttpCounters {
 public:
  void Requested() { Add(requests_, 1); }
  void Received(uint64_t bytes) { Add(received_bytes_, bytes); }
  void Retried() { Add(retries_, 1); }
  void Failed(HttpFailure why) { Add(failures_[static_cast<size_t>(why)], 1); }

  HttpCounts Read() const {
    HttpCounts counts{.requests = Get(requests_),
                      .received_bytes = Get(received_bytes_),
                      .retries = Get(retries_)};
    for (size_t i = 0; i < kHttpFailureCount; ++i) {
      counts.failures[i] = Get(failures_[i]);
    }
    return counts;
  }

 private:
  using Count = std::atomic<uint64_t>;
  static void Add(Count& count, uint64_t more) {
    count.fetch_add(more, std::memory_order_relaxed);
  }
  static uint64_t Get(const Count& count) {
    return count.load(std::memory_order_relaxed);
  }

  Count requests_{0};
  Count received_bytes_{0};
  Count retries_{0};
  std::array<Count, kHttpFailureCount> failures_{};
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_HTTP_COUNTS_H_

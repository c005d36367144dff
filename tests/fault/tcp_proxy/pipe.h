#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_PIPE_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_PIPE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/fault/tcp_proxy/faults.h"

namespace engram::fault {

// Bytes of one direction between their arrival and their departure: where
// delay and throttle happen. Bounded: when it is full, nothing more is read.
//
// Thread safety: none.
class Pipe {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // How much may be added now.
  size_t room() const;
  // REQUIRES: not empty, fits.
  void Add(std::string bytes, Steady::time_point now);

  // The first bytes that may leave; empty: none now.
  absl::string_view Ready(const DirectionFaults& faults,
                          Steady::time_point now);
  // REQUIRES: Ready has just shown as many.
  void Remove(size_t size_bytes, const DirectionFaults& faults);

  // When the first bytes may leave, if there are any.
  std::optional<Steady::time_point> NextReady(
      const DirectionFaults& faults) const;

  bool empty() const { return chunks_.empty(); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  struct Chunk {
    Steady::time_point arrived;
    std::string bytes;
  };

  void EarnBudget(uint64_t bytes_per_s, Steady::time_point now);

  std::deque<Chunk> chunks_;
  size_t first_offset_ = 0;  // of the first chunk: what has left already
  size_t size_bytes_ = 0;
  // Bytes that the throttle allows, and until when it has been reckoned.
  double budget_bytes_ = 0;
  Steady::time_point budget_at_;
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_PIPE_H_

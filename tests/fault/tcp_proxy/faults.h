#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_FAULTS_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_FAULTS_H_

#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"
#include "tests/fault/command.h"

namespace engram::fault {

using Steady = std::chrono::steady_clock;

// What one direction of every connection suffers.
struct DirectionFaults {
  std::chrono::milliseconds delay{0};
  uint64_t bytes_per_s = 0;  // 0: as fast as it goes
};

// Faults that last until they are lifted. `up` is towards the server.
struct Faults {
  DirectionFaults up;
  DirectionFaults down;
  bool stall = false;  // connections are accepted and read, nothing is sent on
  // Each connection is reset with this chance each time.
  double reset_share = 0;
  std::chrono::milliseconds reset_every{1000};
  // One bit of an HTTP/2 DATA frame from the server is turned with this chance.
  double flip_share = 0;
};

// Applies one of
//   delay_ms UP DOWN          throttle UP_BYTES_PER_S DOWN_BYTES_PER_S
//   stall on|off              reset_share SHARE EVERY_MS
//   flip SHARE                clear
// NOT_FOUND: it is none of these. INVALID_ARGUMENT: its arguments; nothing is
// changed.
absl::Status Apply(const Command& command, Faults& faults);

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_FAULTS_H_

#ifndef ENGRAM_CORE_BASE_BACKOFF_H_
#define ENGRAM_CORE_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace engram {

// How long to wait before trying again.
struct BackoffOptions {
  absl::Duration first = absl::Milliseconds(10);
  absl::Duration longest = absl::Milliseconds(500);
};

// Before attempt `failures` + 1: doubles from `first` to `longest`, times a
// random 0.5 .. 1, so that clients that failed together do not come back
// together. REQUIRES: failures >= 1.
absl::Duration BackoffDelay(const BackoffOptions& options, uint32_t failures);

// The same where the random factor is given, for what is to stay together.
absl::Duration BackoffDelay(const BackoffOptions& options, uint32_t failures,
                            double factor);
// 0.5 .. 1.
double RandomBackoffFactor();

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_BACKOFF_H_

#ifndef ENGRAM_CORE_MEMBERSHIP_DNS_STATUS_H_
#define ENGRAM_CORE_MEMBERSHIP_DNS_STATUS_H_

#include "absl/status/status.h"

namespace engram {

// OK for ARES_SUCCESS; NOT_FOUND: no such name, or no such records of it;
// DEADLINE_EXCEEDED: cancelled; all else is UNAVAILABLE.
absl::Status DnsStatus(int ares_status);

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_DNS_STATUS_H_

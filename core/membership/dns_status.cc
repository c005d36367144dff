#include "core/membership/dns_status.h"

#include <ares.h>

namespace engram {

absl::Status DnsStatus(int ares_status) {
  switch (ares_status) {
    case ARES_SUCCESS:
      return absl::OkStatus();
    case ARES_ENOTFOUND:
      return absl::NotFoundError("no such name");
    case ARES_ENODATA:
      return absl::NotFoundError("no such records");
    case ARES_ECANCELLED:
      return absl::DeadlineExceededError("no answer in time");
    default:
      return absl::UnavailableError(ares_strerror(ares_status));
  }
}

}  // namespace engram

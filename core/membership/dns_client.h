#ifndef ENGRAM_CORE_MEMBERSHIP_DNS_CLIENT_H_
#define ENGRAM_CORE_MEMBERSHIP_DNS_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct ares_channeldata;

namespace engram {

struct SrvRecord {
  std::string target;
  uint16_t port = 0;

  friend bool operator==(const SrvRecord&, const SrvRecord&) = default;
};

// Asks DNS, over UDP and, for long answers, TCP. For a few questions: it reads
// the machine's settings when it is made. Blocks; no thread of its own.
//
// Thread safety: one call at a time.
class DnsClient {
 public:
  // INVALID_ARGUMENT: `server` is not IP:PORT or [IPV6]:PORT.
  static absl::Status CheckServer(absl::string_view server);

  // `server`: of CheckServer. Empty: the machine's resolvers.
  static absl::StatusOr<std::unique_ptr<DnsClient>> Create(
      const std::string& server);

  ~DnsClient();
  DnsClient(const DnsClient&) = delete;
  DnsClient& operator=(const DnsClient&) = delete;

  // In the order of the answer; never empty. The machine's resolvers also look
  // in its search domains. NOT_FOUND: no such name, or no SRV records of it;
  // UNAVAILABLE: refused, failed, or no answer to several tries;
  // DEADLINE_EXCEEDED.
  absl::StatusOr<std::vector<SrvRecord>> LookUpSrv(const std::string& name,
                                                   absl::Time deadline);

  // For each host its lowest IPv4 address or, where it has none, its lowest
  // IPv6 address, in text; or the same errors as above.
  std::vector<absl::StatusOr<std::string>> LookUpAddresses(
      const std::vector<std::string>& hosts, absl::Time deadline);

 private:
  explicit DnsClient(ares_channeldata* channel, bool searches)
      : channel_(channel), searches_(searches) {}

  // Handles answers until `ask` (which starts more questions) says that none
  // is outstanding, or cancels all at `deadline`.
  void Run(absl::FunctionRef<bool()> ask, absl::Time deadline);
  // Handles what is there, or waits for it until `deadline`.
  void Turn(absl::Time deadline);

  ares_channeldata* const channel_;
  const bool searches_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_DNS_CLIENT_H_

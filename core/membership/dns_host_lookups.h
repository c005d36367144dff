#ifndef ENGRAM_CORE_MEMBERSHIP_DNS_HOST_LOOKUPS_H_
#define ENGRAM_CORE_MEMBERSHIP_DNS_HOST_LOOKUPS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

struct ares_channeldata;

namespace engram {

// The addresses of many hosts: for each an A question and, where there are no
// such records, an AAAA one; a bounded number at a time.
class DnsHostLookups {
 public:
  // `channel` must end all questions before this ends.
  DnsHostLookups(ares_channeldata* channel,
                 const std::vector<std::string>& hosts);
  DnsHostLookups(const DnsHostLookups&) = delete;
  DnsHostLookups& operator=(const DnsHostLookups&) = delete;

  // Asks more; false when everything has been answered.
  bool Ask();

  // In the order of `hosts`. DEADLINE_EXCEEDED: there was no answer yet.
  std::vector<absl::StatusOr<std::string>> TakeAddresses();

 private:
  struct Lookup {
    DnsHostLookups* all = nullptr;
    std::string host;
    int type = 0;  // of the question: A or AAAA
    absl::StatusOr<std::string> address;
  };
  static void OnAnswer(void* lookup, int status, int timeouts,
                       unsigned char* message, int size_bytes);

  ares_channeldata* const channel_;
  std::vector<Lookup> lookups_;
  std::deque<Lookup*> waiting_;
  size_t in_flight_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_DNS_HOST_LOOKUPS_H_

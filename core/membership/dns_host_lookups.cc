#include "core/membership/dns_host_lookups.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/membership/dns_status.h"

namespace engram {
namespace {

constexpr size_t kMaxInFlight = 64;  // a burst that socket buffers hold
constexpr int kMaxAddresses = 16;    // of one host; further ones do not count

// The lowest, so that the order of the answers does not matter.
template <typename Records, typename GetIp>
absl::StatusOr<std::string> LowestIp(int family, const Records& records,
                                     int count, GetIp ip_of) {
  if (count == 0) return DnsStatus(ARES_ENODATA);
  const size_t size_bytes = sizeof(*ip_of(records[0]));
  const auto* lowest = ip_of(records[0]);
  for (int i = 1; i < count; ++i) {
    const auto* ip = ip_of(records[i]);
    if (std::memcmp(ip, lowest, size_bytes) < 0) lowest = ip;
  }
  std::array<char, INET6_ADDRSTRLEN> text;
  return std::string(inet_ntop(family, lowest, text.data(), text.size()));
}

absl::StatusOr<std::string> ParseAddress(int status, int type,
                                         const unsigned char* message,
                                         int size_bytes) {
  ENGRAM_RETURN_IF_ERROR(DnsStatus(status));
  int count = kMaxAddresses;
  if (type == ns_t_a) {
    std::array<ares_addrttl, kMaxAddresses> records;
    ENGRAM_RETURN_IF_ERROR(DnsStatus(ares_parse_a_reply(
        message, size_bytes, nullptr, records.data(), &count)));
    return LowestIp(AF_INET, records, count,
                    [](const ares_addrttl& record) { return &record.ipaddr; });
  }
  std::array<ares_addr6ttl, kMaxAddresses> records;
  ENGRAM_RETURN_IF_ERROR(DnsStatus(ares_parse_aaaa_reply(
      message, size_bytes, nullptr, records.data(), &count)));
  return LowestIp(AF_INET6, records, count,
                  [](const ares_addr6ttl& record) { return &record.ip6addr; });
}

}  // namespace

DnsHostLookups::DnsHostLookups(ares_channeldata* channel,
                               const std::vector<std::string>& hosts)
    : channel_(channel), lookups_(hosts.size()) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    lookups_[i] = {this, hosts[i], ns_t_a, DnsStatus(ARES_ECANCELLED)};
    waiting_.push_back(&lookups_[i]);
  }
}

bool DnsHostLookups::Ask() {
  while (!waiting_.empty() && in_flight_ < kMaxInFlight) {
    Lookup* const lookup = waiting_.front();
    waiting_.pop_front();
    ++in_flight_;
    // May answer before it returns.
    ares_query(channel_, lookup->host.c_str(), ns_c_in, lookup->type, OnAnswer,
               lookup);
  }
  return in_flight_ > 0;
}

void DnsHostLookups::OnAnswer(void* lookup, int status, int /*timeouts*/,
                              unsigned char* message, int size_bytes) {
  auto* const asked = static_cast<Lookup*>(lookup);
  --asked->all->in_flight_;
  asked->address = ParseAddress(status, asked->type, message, size_bytes);
  // A name that there is not has no addresses of another type either.
  const bool has_others =
      status != ARES_ENOTFOUND && absl::IsNotFound(asked->address.status());
  if (has_others && asked->type == ns_t_a) {
    asked->type = ns_t_aaaa;
    asked->all->waiting_.push_back(asked);
  }
}

std::vector<absl::StatusOr<std::string>> DnsHostLookups::TakeAddresses() {
  std::vector<absl::StatusOr<std::string>> addresses;
  addresses.reserve(lookups_.size());
  for (Lookup& lookup : lookups_) {
    addresses.push_back(
        lookup.address.ok()
            ? std::move(lookup.address)
            : Annotate(lookup.address.status(),
                       absl::StrCat("address of ", lookup.host)));
  }
  return addresses;
}

}  // namespace engram

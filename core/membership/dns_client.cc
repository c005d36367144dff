#include "core/membership/dns_client.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <poll.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/membership/dns_host_lookups.h"
#include "core/membership/dns_status.h"
#include "core/rpc/address.h"

namespace engram {
namespace {

// Of the first try; doubled with each.
constexpr absl::Duration kTryTimeout = absl::Milliseconds(250);
constexpr int kTries = 4;
constexpr int kUdpAnswerBytes = 1232;  // passes every network in one piece

struct SrvAnswer {
  std::optional<absl::StatusOr<std::vector<SrvRecord>>> records;
};

absl::StatusOr<std::vector<SrvRecord>> ParseSrv(int status,
                                                const unsigned char* message,
                                                int size_bytes) {
  ENGRAM_RETURN_IF_ERROR(DnsStatus(status));
  ares_srv_reply* replies = nullptr;
  ENGRAM_RETURN_IF_ERROR(
      DnsStatus(ares_parse_srv_reply(message, size_bytes, &replies)));
  std::vector<SrvRecord> records;
  for (const ares_srv_reply* reply = replies; reply != nullptr;
       reply = reply->next) {
    records.push_back({reply->host, reply->port});
  }
  if (replies != nullptr) ares_free_data(replies);
  if (records.empty()) return DnsStatus(ARES_ENODATA);
  return records;
}

void OnSrv(void* answer, int status, int /*timeouts*/, unsigned char* message,
           int size_bytes) {
  static_cast<SrvAnswer*>(answer)->records =
      ParseSrv(status, message, size_bytes);
}

bool IsIpAddress(int family, absl::string_view text) {
  in6_addr ignored;
  return inet_pton(family, std::string(text).c_str(), &ignored) == 1;
}

}  // namespace

absl::Status DnsClient::CheckServer(absl::string_view server) {
  ENGRAM_RETURN_IF_ERROR(CheckAddress(server));
  const absl::string_view host = server.substr(0, server.rfind(':'));
  const bool is_ip =
      absl::StartsWith(host, "[")
          ? IsIpAddress(AF_INET6, host.substr(1, host.size() - 2))
          : IsIpAddress(AF_INET, host);
  if (!is_ip || absl::EndsWith(server, ":0")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "DNS server \"", server, "\" is not IP:PORT or [IPV6]:PORT"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DnsClient>> DnsClient::Create(
    const std::string& server) {
  static const int initialized = ares_library_init(ARES_LIB_INIT_ALL);
  ENGRAM_CHECK(initialized == ARES_SUCCESS);
  ares_options options = {};
  options.flags = ARES_FLAG_EDNS;
  options.ednspsz = kUdpAnswerBytes;
  options.timeout = static_cast<int>(absl::ToInt64Milliseconds(kTryTimeout));
  options.tries = kTries;
  ares_channeldata* channel = nullptr;
  const int status = ares_init_options(
      &channel, &options,
      ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
  if (status != ARES_SUCCESS) {
    return absl::UnavailableError(
        absl::StrCat("the resolver does not start: ", ares_strerror(status)));
  }
  std::unique_ptr<DnsClient> client(new DnsClient(channel, server.empty()));
  if (!server.empty()) {
    ENGRAM_RETURN_IF_ERROR(
        Annotate(DnsStatus(ares_set_servers_ports_csv(channel, server.c_str())),
                 absl::StrCat("DNS server ", server)));
  }
  return client;
}

DnsClient::~DnsClient() { ares_destroy(channel_); }

absl::StatusOr<std::vector<SrvRecord>> DnsClient::LookUpSrv(
    const std::string& name, absl::Time deadline) {
  SrvAnswer answer;
  const auto ask = searches_ ? ares_search : ares_query;
  ask(channel_, name.c_str(), ns_c_in, ns_t_srv, OnSrv, &answer);
  Run([&] { return !answer.records.has_value(); }, deadline);
  ENGRAM_CHECK(answer.records.has_value());
  if (!answer.records->ok()) {
    return Annotate(answer.records->status(),
                    absl::StrCat("SRV records of ", name));
  }
  return *std::move(answer.records);
}

std::vector<absl::StatusOr<std::string>> DnsClient::LookUpAddresses(
    const std::vector<std::string>& hosts, absl::Time deadline) {
  DnsHostLookups lookups(channel_, hosts);
  Run([&] { return lookups.Ask(); }, deadline);
  return lookups.TakeAddresses();
}

void DnsClient::Run(absl::FunctionRef<bool()> ask, absl::Time deadline) {
  while (ask()) {
    if (absl::Now() >= deadline) {
      ares_cancel(channel_);
      return;
    }
    Turn(deadline);
  }
}

void DnsClient::Turn(absl::Time deadline) {
  std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets;
  const auto wanted = static_cast<unsigned>(
      ares_getsock(channel_, sockets.data(), ARES_GETSOCK_MAXNUM));
  std::array<pollfd, ARES_GETSOCK_MAXNUM> polled;
  nfds_t count = 0;
  for (unsigned i = 0; i < sockets.size(); ++i) {
    const bool reads = (wanted >> i & 1) != 0;
    const bool writes = (wanted >> (i + ARES_GETSOCK_MAXNUM) & 1) != 0;
    if (!reads && !writes) continue;
    polled[count++] = {
        sockets[i],
        static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0};
  }
  timeval next_try;
  absl::Duration wait = deadline - absl::Now();
  if (ares_timeout(channel_, nullptr, &next_try) != nullptr) {
    wait = std::min(wait, absl::DurationFromTimeval(next_try));
  }
  wait = std::clamp(wait, absl::ZeroDuration(), kTryTimeout);
  poll(polled.data(), count,
       static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
  for (nfds_t i = 0; i < count; ++i) {
    const short happened = polled[i].revents;
    const bool reads = (happened & (POLLIN | POLLERR | POLLHUP)) != 0;
    const bool writes = (happened & (POLLOUT | POLLERR)) != 0;
    ares_process_fd(channel_, reads ? polled[i].fd : ARES_SOCKET_BAD,
                    writes ? polled[i].fd : ARES_SOCKET_BAD);
  }
  // Tries whose time is over.
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

}  // namespace engram

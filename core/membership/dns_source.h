#ifndef ENGRAM_CORE_MEMBERSHIP_DNS_SOURCE_H_
#define ENGRAM_CORE_MEMBERSHIP_DNS_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/membership/dns_client.h"
#include "core/membership/member_source.h"

namespace engram {

// A server as DNS names it.
struct SrvServer {
  std::string name;
  SrvRecord record;

  friend bool operator==(const SrvServer&, const SrvServer&) = default;
};

// Names the servers of `records`: the first label of the target, in lower case.
// A target of "." says that there is none (RFC 2782). INVALID_ARGUMENT names
// the record: a bad name, port 0, a name that stands twice.
absl::StatusOr<std::vector<SrvServer>> NameSrvServers(
    const std::vector<SrvRecord>& records);

// SRV records, and the addresses of their targets by the same resolver. A
// target without an address is left out, with a line in the log when that
// changes; UNAVAILABLE when no target has one.
class DnsSource final : public MemberSource {
 public:
  // `spec`: NAME or NAME@IP:PORT.
  static absl::StatusOr<std::unique_ptr<MemberSource>> Create(
      absl::string_view spec);

  absl::StatusOr<std::vector<Member>> Read(absl::Time deadline) override;
  bool absence_is_departure() const override { return false; }

 private:
  DnsSource(absl::string_view name, absl::string_view server)
      : name_(name), server_(server) {}

  void LogLeftOut(const std::vector<std::string>& left_out);

  const std::string name_;
  const std::string server_;  // empty: the machine's resolvers
  Mutex mutex_;
  std::string last_left_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_DNS_SOURCE_H_

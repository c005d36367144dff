#ifndef ENGRAM_CORE_MEMBERSHIP_MEMBER_SOURCE_H_
#define ENGRAM_CORE_MEMBERSHIP_MEMBER_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/membership/member.h"

namespace engram {

// Where the names and addresses of the cluster's table servers come from.
//
//   static:NAME=ADDRESS,...   a list that never changes
//   file:PATH                 a line "NAME ADDRESS [CAPACITY]" for each server,
//                             # begins a comment; read again at every Read
//   dns:NAME[@IP:PORT]        SRV records of NAME, asked of the machine's
//                             resolver or of the one given. A server is named
//                             by the first label of its target, its address is
//                             the target's lowest IPv4 address or, where it
//                             has none, IPv6 address, and the port
//
// Thread safety: all methods may be called concurrently.
class MemberSource {
 public:
  virtual ~MemberSource() = default;

  // Looks now. Members by name, names distinct, addresses distinct (other than
  // with port 0), never empty. UNAVAILABLE or DEADLINE_EXCEEDED: no answer by
  // `deadline`; NOT_FOUND: no file, no such name; INVALID_ARGUMENT names file
  // and line, or the record. Blocks, at most until `deadline`.
  virtual absl::StatusOr<std::vector<Member>> Read(absl::Time deadline) = 0;

  // Whether a member that an answer lacks has been taken out on purpose: true
  // of lists that people write, false of DNS, which forgets servers that only
  // restart.
  virtual bool absence_is_departure() const = 0;

  // INVALID_ARGUMENT names the entry: an unknown scheme, a bad name or address,
  // a name or an address that stands twice.
  static absl::StatusOr<std::unique_ptr<MemberSource>> Parse(
      absl::string_view spec);
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_MEMBER_SOURCE_H_

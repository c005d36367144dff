#ifndef ENGRAM_CORE_MEMBERSHIP_MEMBER_H_
#define ENGRAM_CORE_MEMBERSHIP_MEMBER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// A table server of the cluster. Its name decides what it owns; its address is
// for clients and peers.
struct Member {
  std::string name;
  std::string address;
  double capacity = 1.0;  // relative to the other members'

  friend bool operator==(const Member&, const Member&) = default;
};

constexpr size_t kMaxServerNameBytes = 253;  // of a DNS name

// INVALID_ARGUMENT: not of letters, digits, '.', '_' and '-', empty, or longer
// than kMaxServerNameBytes.
absl::Status CheckServerName(absl::string_view name);

constexpr size_t kMaxMembers = 4096;

// `members` by name. INVALID_ARGUMENT: none or more than kMaxMembers, or two of
// one name or of one address (other than with port 0, which says "any": the
// true one is known only once it is bound).
absl::StatusOr<std::vector<Member>> MakeMemberList(std::vector<Member> members);

// INVALID_ARGUMENT lists the members when none has this name.
absl::Status CheckIsMember(const std::vector<Member>& members,
                           absl::string_view server_name);

// "a, b, c and 13 more", for messages.
std::string NamesOf(const std::vector<Member>& members);

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_MEMBER_H_

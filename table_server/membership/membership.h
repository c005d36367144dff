#ifndef ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBERSHIP_H_
#define ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBERSHIP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// A table server of the cluster. Its name decides what it owns; its address is
// for people and peers.
struct Member {
  std::string name;
  std::string address;

  friend bool operator==(const Member&, const Member&) = default;
};

// Who the members are.
// Thread safety: all methods may be called concurrently.
class Membership {
 public:
  virtual ~Membership() = default;

  // The members now: names distinct, never empty.
  virtual std::vector<Member> Current() const = 0;

  // From `spec`, "static:NAME=ADDRESS,NAME=ADDRESS,...". Names are of letters,
  // digits, '.', '_' and '-'. INVALID_ARGUMENT names the entry: a bad name or
  // address, a name or an address that stands twice (other than with port 0).
  // UNIMPLEMENTED: another scheme.
  static absl::StatusOr<std::unique_ptr<Membership>> Parse(
      absl::string_view spec);
};

// INVALID_ARGUMENT lists the members when none has this name.
absl::Status CheckIsMember(const std::vector<Member>& members,
                           absl::string_view server_name);

// INVALID_ARGUMENT: not of letters, digits, '.', '_' and '-', or not 1 .. 253
// bytes long.
absl::Status CheckServerName(absl::string_view name);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBERSHIP_H_

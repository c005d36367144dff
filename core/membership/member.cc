#include "core/membership/member.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace engram {
namespace {

constexpr size_t kNamesInMessage = 16;

}  // namespace

absl::Status CheckServerName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxServerNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("server name \"", name, "\" has ", name.size(),
                     " bytes, 1 .. ", kMaxServerNameBytes, " are allowed"));
  }
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
        c == '_' || c == '-') {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("server name \"", name,
                     "\" has a character that is no letter, digit, '.', '_' "
                     "or '-'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Member>> MakeMemberList(
    std::vector<Member> members) {
  if (members.empty()) {
    return absl::InvalidArgumentError("no server is named");
  }
  if (members.size() > kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(
        members.size(), " servers are named, the limit is ", kMaxMembers));
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.name < b.name; });
  absl::flat_hash_set<absl::string_view> addresses;
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    if (i > 0 && members[i - 1].name == member.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("two servers of one name, ", member.name));
    }
    if (absl::EndsWith(member.address, ":0")) continue;
    if (!addresses.insert(member.address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two servers of one address, ", member.address));
    }
  }
  return members;
}

absl::Status CheckIsMember(const std::vector<Member>& members,
                           absl::string_view server_name) {
  for (const Member& member : members) {
    if (member.name == server_name) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("server name ", server_name,
                                                 " is not among the members ",
                                                 NamesOf(members)));
}

std::string NamesOf(const std::vector<Member>& members) {
  std::string names;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == kNamesInMessage) {
      absl::StrAppend(&names, " and ", members.size() - i, " more");
      break;
    }
    absl::StrAppend(&names, i == 0 ? "" : ", ", members[i].name);
  }
  return names;
}

}  // namespace engram

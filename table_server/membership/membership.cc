#include "table_server/membership/membership.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"

namespace engram {
namespace {

constexpr absl::string_view kStaticScheme = "static:";
constexpr size_t kMaxNameBytes = 253;  // of a DNS name

class StaticMembership final : public Membership {
 public:
  explicit StaticMembership(std::vector<Member> members)
      : members_(std::move(members)) {}

  std::vector<Member> Current() const override { return members_; }

 private:
  const std::vector<Member> members_;
};

absl::StatusOr<Member> ParseEntry(absl::string_view entry) {
  const size_t equals = entry.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", entry, "\" is not NAME=ADDRESS"));
  }
  Member member{std::string(entry.substr(0, equals)),
                std::string(entry.substr(equals + 1))};
  ENGRAM_RETURN_IF_ERROR(CheckServerName(member.name));
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckAddress(member.address), "member " + member.name));
  return member;
}

}  // namespace

absl::Status CheckServerName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("server name \"", name, "\" has ", name.size(),
                     " bytes, 1 .. ", kMaxNameBytes, " are allowed"));
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

absl::StatusOr<std::unique_ptr<Membership>> Membership::Parse(
    absl::string_view spec) {
  absl::string_view list = spec;
  if (!absl::ConsumePrefix(&list, kStaticScheme)) {
    return absl::UnimplementedError(
        absl::StrCat("members \"", spec,
                     "\": this release supports static:NAME=ADDRESS,... only"));
  }
  std::vector<Member> members;
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_set<std::string> addresses;
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    absl::StatusOr<Member> member = ParseEntry(entry);
    if (!member.ok()) {
      return Annotate(member.status(), absl::StrCat("members \"", spec, "\""));
    }
    if (!names.insert(member->name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "members \"", spec, "\": two servers of one name, ", member->name));
    }
    // Port 0 says "any": the true one is known only once it is bound.
    const bool any_port = absl::EndsWith(member->address, ":0");
    if (!any_port && !addresses.insert(member->address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("members \"", spec, "\": two servers of one address, ",
                       member->address));
    }
    members.push_back(*std::move(member));
  }
  return std::make_unique<StaticMembership>(std::move(members));
}

absl::Status CheckIsMember(const std::vector<Member>& members,
                           absl::string_view server_name) {
  std::vector<absl::string_view> names;
  for (const Member& member : members) {
    if (member.name == server_name) return absl::OkStatus();
    names.push_back(member.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("server name ", server_name,
                                                 " is not among the members ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace engram

#include "core/membership/static_source.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"

namespace engram {
namespace {

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

absl::StatusOr<std::unique_ptr<MemberSource>> StaticSource::Create(
    absl::string_view list) {
  std::vector<Member> members;
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    ENGRAM_ASSIGN_OR_RETURN(Member member, ParseEntry(entry));
    members.push_back(std::move(member));
  }
  ENGRAM_ASSIGN_OR_RETURN(members, MakeMemberList(std::move(members)));
  return std::make_unique<StaticSource>(std::move(members));
}

}  // namespace engram

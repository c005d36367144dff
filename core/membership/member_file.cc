#include "core/membership/member_file.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"

namespace engram {
namespace {

absl::StatusOr<double> ParseCapacity(absl::string_view text) {
  double capacity = 0;
  if (!absl::SimpleAtod(text, &capacity) || !std::isfinite(capacity) ||
      capacity <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("capacity \"", text, "\" is not a finite number above 0"));
  }
  return capacity;
}

absl::StatusOr<Member> ParseWords(const std::vector<absl::string_view>& words) {
  if (words.size() < 2 || words.size() > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        words.size(), " words, a server is NAME ADDRESS [CAPACITY]"));
  }
  Member member{std::string(words[0]), std::string(words[1])};
  ENGRAM_RETURN_IF_ERROR(CheckServerName(member.name));
  ENGRAM_RETURN_IF_ERROR(CheckAddress(member.address));
  if (words.size() == 3) {
    ENGRAM_ASSIGN_OR_RETURN(member.capacity, ParseCapacity(words[2]));
  }
  return member;
}

}  // namespace

absl::StatusOr<std::vector<Member>> ParseMemberFile(absl::string_view text) {
  if (text.size() > kMaxMemberFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.size(), " bytes, the limit is ", kMaxMemberFileBytes));
  }
  std::vector<Member> members;
  size_t line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    absl::StatusOr<Member> member = ParseWords(words);
    if (!member.ok()) {
      return Annotate(member.status(), absl::StrCat("line ", line_number));
    }
    members.push_back(*std::move(member));
  }
  return MakeMemberList(std::move(members));
}

}  // namespace engram

#ifndef ENGRAM_CORE_MEMBERSHIP_MEMBER_FILE_H_
#define ENGRAM_CORE_MEMBERSHIP_MEMBER_FILE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/membership/member.h"

namespace engram {

constexpr size_t kMaxMemberFileBytes = 1 << 20;

// The members that a text of lines "NAME ADDRESS [CAPACITY]" names, by name.
// Blanks separate; # begins a comment, anywhere in a line; empty lines count
// for nothing. INVALID_ARGUMENT names the line: a bad name, address or capacity
// (above 0 and finite), too few or too many words; and as MakeMemberList.
absl::StatusOr<std::vector<Member>> ParseMemberFile(absl::string_view text);

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_MEMBER_FILE_H_

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/membership/member_file.h"
#include "core/rpc/address.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto members =
      engram::ParseMemberFile(engram::test::AsText(data, size));
  if (!members.ok()) return 0;
  ENGRAM_CHECK(!members->empty() && members->size() <= engram::kMaxMembers);
  std::string text;
  for (size_t i = 0; i < members->size(); ++i) {
    const engram::Member& member = (*members)[i];
    ENGRAM_CHECK(i == 0 || (*members)[i - 1].name < member.name);
    ENGRAM_CHECK(engram::CheckServerName(member.name).ok());
    ENGRAM_CHECK(engram::CheckAddress(member.address).ok());
    ENGRAM_CHECK(std::isfinite(member.capacity) && member.capacity > 0);
    absl::StrAppendFormat(&text, "%s %s %.17g\n", member.name, member.address,
                          member.capacity);
  }
  const auto again = engram::ParseMemberFile(text);
  ENGRAM_CHECK(text.size() > engram::kMaxMemberFileBytes ||
               (again.ok() && *again == *members));
  return 0;
}

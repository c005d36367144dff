#include "engram_client/ctl/table_addresses.h"

#include <memory>
#include <utility>

#include "core/base/status_macros.h"
#include "core/membership/member_source.h"
#include "core/rpc/address.h"
#include "engram_client/table_servers.h"

namespace engram::ctl {

absl::StatusOr<std::vector<std::string>> TableAddresses(
    absl::string_view tables, absl::Time deadline) {
  if (!IsMemberSpec(tables)) return ParseAddressList(tables);
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<MemberSource> source,
                          MemberSource::Parse(tables));
  ENGRAM_ASSIGN_OR_RETURN(std::vector<Member> members, source->Read(deadline));
  std::vector<std::string> addresses;
  for (Member& member : members) {
    addresses.push_back(std::move(member.address));
  }
  return addresses;
}

}  // namespace engram::ctl

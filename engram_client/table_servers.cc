#include "engram_client/table_servers.h"

#include "absl/strings/match.h"
#include "core/base/status_macros.h"
#include "core/membership/member_source.h"
#include "core/rpc/address.h"

namespace engram {

bool IsMemberSpec(absl::string_view text) {
  for (const absl::string_view scheme : {"static:", "file:", "dns:"}) {
    if (absl::StartsWith(text, scheme)) return true;
  }
  return false;
}

absl::StatusOr<TableServers> ParseTableServers(absl::string_view text) {
  TableServers servers;
  if (IsMemberSpec(text)) {
    ENGRAM_RETURN_IF_ERROR(MemberSource::Parse(text).status());
    servers.members = std::string(text);
  } else {
    ENGRAM_ASSIGN_OR_RETURN(servers.addresses, ParseAddressList(text));
  }
  return servers;
}

}  // namespace engram

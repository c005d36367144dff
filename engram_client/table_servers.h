#ifndef ENGRAM_ENGRAM_CLIENT_TABLE_SERVERS_H_
#define ENGRAM_ENGRAM_CLIENT_TABLE_SERVERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// What a flag says of where table servers are: as TableClient::Options.
struct TableServers {
  std::vector<std::string> addresses;
  std::string members;
};

// Whether it begins with a scheme of MemberSource; so no host is called static,
// file or dns.
bool IsMemberSpec(absl::string_view text);

// Addresses separated by commas, or such a text. INVALID_ARGUMENT names the
// entry.
absl::StatusOr<TableServers> ParseTableServers(absl::string_view text);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_TABLE_SERVERS_H_

#ifndef ENGRAM_ENGRAM_CLIENT_CTL_CLUSTER_VIEWS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_CLUSTER_VIEWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/membership/member.h"
#include "engram_client/ctl/probes.h"

namespace engram::ctl {

// How some servers see their cluster. By the same digest they agree on who
// owns what.
struct SeenView {
  std::string digest;
  uint32_t replicas = 0;
  std::vector<Member> members;       // by name
  std::vector<std::string> servers;  // names of those that see it so
};

// The views of the servers that have one, that of most servers first.
std::vector<SeenView> ViewsOf(absl::Span<const ServerProbe> servers);

// "views differ: t0, t1 see 3 members, t2 sees 4 (with t3)"; empty while all
// are the same.
std::string ViewDifferences(absl::Span<const SeenView> views);

// Names of the servers whose view has `name` and that have heard from it
// lately, itself left out.
std::vector<std::string> HeardBy(absl::Span<const ServerProbe> servers,
                                 const std::string& name);
// And those that have not.
std::vector<std::string> NotHeardBy(absl::Span<const ServerProbe> servers,
                                    const std::string& name);

// Members of their views that none of `servers` is, by name or by address, and
// whose address can be called. At most `limit`.
std::vector<Member> MembersNotAsked(absl::Span<const ServerProbe> servers,
                                    size_t limit);

// Names of servers that others know to have left for good and that are none of
// `servers`: what they hold is not seen.
std::vector<std::string> DepartedNotAsked(
    absl::Span<const ServerProbe> servers);

// Names those that said nothing, by what the others' views call their address.
void NameUnreachable(std::vector<ServerProbe>& servers);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_CLUSTER_VIEWS_H_

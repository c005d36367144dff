#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_PROBES_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_PROBES_H_

#include <string>
#include <utility>
#include <vector>

#include "engram_client/ctl/probes.h"

namespace engram::ctl {

inline constexpr char kVersion[] = "0123456789abcdef";

// A server at NAME:7001 that is ready and of an older release. `held`: of
// layers 1 and 14.
inline ServerProbe Server(const std::string& name, uint64_t instance_id,
                          const std::vector<bool>& held) {
  return {.address = name + ":7001",
          .name = name,
          .version = kVersion,
          .instance_id = instance_id,
          .ready = true,
          .layers = {{1, held}, {14, held}}};
}

inline ServerProbe Unreachable(const std::string& address) {
  return {.address = address, .error = "refused"};
}

// One that sees `members`, all of them heard, by a digest made of them.
inline ServerProbe Seeing(const std::string& name,
                          const std::vector<std::string>& members,
                          const std::vector<bool>& held = {true, true}) {
  ServerProbe server = Server(name, std::hash<std::string>()(name), held);
  v1::ExchangeResponse& exchange = server.exchange.emplace();
  exchange.set_server_name(name);
  exchange.set_replicas(2);
  std::string digest = "view-of";
  for (const std::string& member : members) {
    digest += "-" + member;
    v1::ExchangeResponse::ViewMember& seen = *exchange.add_members();
    seen.set_name(member);
    seen.set_address(member + ":7001");
    seen.set_capacity(1);
    seen.set_heard(true);
  }
  exchange.set_view_digest(digest);
  exchange.mutable_moves()->set_owned(server.partitions_held());
  return server;
}

inline v1::ExchangeResponse::Moves& MovesOf(ServerProbe& server) {
  return *server.exchange->mutable_moves();
}

}  // namespace engram::ctl

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_PROBES_H_

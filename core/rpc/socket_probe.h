#ifndef ENGRAM_CORE_RPC_SOCKET_PROBE_H_
#define ENGRAM_CORE_RPC_SOCKET_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace engram {

// Whether a unix socket may be bound at `path`. gRPC takes over any socket
// file it finds, also that of a server that lives. UNAVAILABLE: somebody
// listens there, or the path is something else than a socket.
absl::Status CheckUnixPathIsFree(const std::string& path);

// Why `address` (host:port or unix:PATH) could not be bound, in words, found
// by trying once more; gRPC itself only logs it.
std::string WhyNotBound(absl::string_view address);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_SOCKET_PROBE_H_

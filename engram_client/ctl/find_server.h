#ifndef ENGRAM_ENGRAM_CLIENT_CTL_FIND_SERVER_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_FIND_SERVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engram_client/ctl/probes.h"

namespace engram::ctl {

// The server of that name, which answered and knows of a cluster. NOT_FOUND
// lists the names that were found and who did not answer, or says that it left;
// UNAVAILABLE: it did not answer; FAILED_PRECONDITION: two of that name;
// UNIMPLEMENTED: it is of a release that knows of no cluster.
absl::StatusOr<ServerProbe> FindServer(absl::Span<const ServerProbe> servers,
                                       const std::string& name);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_FIND_SERVER_H_

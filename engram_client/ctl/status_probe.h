#ifndef ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engram/v1/table.pb.h"
#include "engram_client/ctl/coverage.h"

namespace engram::ctl {

// Asks every server what it is and holds, all at once; each in the order of
// the addresses, with `error` set where `deadline` passed or the call failed.
std::vector<ServerProbe> ProbeServers(const std::vector<std::string>& addresses,
                                      absl::Time deadline);
std::vector<WorkerProbe> ProbeWorkers(const std::vector<std::string>& addresses,
                                      absl::Time deadline);

// The partitions that a snapshot names, by the layers that the server said it
// serves. INVALID_ARGUMENT: a layer or a bitmap that does not match those.
absl::StatusOr<std::vector<ServerProbe::Layer>> HeldPartitions(
    const v1::GetTableResponse& table,
    const v1::WatchPartitionsResponse::Snapshot& snapshot);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_

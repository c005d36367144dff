#ifndef ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "engram_client/ctl/probes.h"

namespace engram::ctl {

// Asks every server what it is, holds and has to move, all at once; each in the
// order of the addresses, with `error` set where `deadline` passed or the call
// failed.
std::vector<ServerProbe> ProbeServers(const std::vector<std::string>& addresses,
                                      absl::Time deadline);
std::vector<WorkerProbe> ProbeWorkers(const std::vector<std::string>& addresses,
                                      absl::Time deadline);

// ProbeServers, and then the servers that those see as members, in rounds of at
// most `timeout` each, until no new ones are found. Those that `before`, an
// earlier look, found are asked too: who leaves is no member any more.
std::vector<ServerProbe> ProbeCluster(const std::vector<std::string>& addresses,
                                      absl::Duration timeout,
                                      absl::Span<const ServerProbe> before);

// The partitions in `held`, by the layers that the server said it serves.
// INVALID_ARGUMENT: a layer or a bitmap that does not match those.
absl::StatusOr<std::vector<ServerProbe::Layer>> HeldPartitions(
    const v1::GetTableResponse& table, const LayerPartitionsList& held);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_STATUS_PROBE_H_

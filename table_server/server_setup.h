#ifndef ENGRAM_TABLE_SERVER_SERVER_SETUP_H_
#define ENGRAM_TABLE_SERVER_SERVER_SETUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/membership/member_source.h"
#include "core/model/manifest.h"
#include "core/rpc/queue_loop.h"
#include "table_server/loading/partition_store.h"
#include "table_server/rebalance/rebalancer.h"
#include "table_server/server.h"

namespace engram {

// What a server's options mean for its parts.

// Greater for an instance that started later: so others tell a server that came
// back from the one that left.
uint64_t DrawInstanceId();

// Of options.members or, if that is empty, this server alone. INVALID_ARGUMENT:
// as MemberSource::Parse, or the server's own name.
absl::StatusOr<std::shared_ptr<MemberSource>> OpenMembers(
    const TableServer::Options& options);

// INVALID_ARGUMENT: no replicas. Of a static list, which nobody will change:
// INVALID_ARGUMENT when this server is none of it, RESOURCE_EXHAUSTED when its
// share does not fit.
absl::Status CheckShareFits(const TableServer::Options& options,
                            const Manifest& manifest, MemberSource& members,
                            PartitionStore& store);

// One thread a queue: then a connection is mostly served by one thread, which
// waits for no other that holds the connection. Each stays on one NUMA node.
std::vector<QueueLoop::Options> QueuesOf(const TableServer::Options& options);

Rebalancer::Options RebalanceOptions(const TableServer::Options& options,
                                     const MemberSource& members,
                                     uint64_t instance_id);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVER_SETUP_H_

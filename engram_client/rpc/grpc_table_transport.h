#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_

#include <cstddef>
#include <memory>
#include <string>

#include "engram_client/rpc/client_loops.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// Connections for gathers of decode size and for larger ones.
inline constexpr size_t kSmallLanes = 2;
inline constexpr size_t kBulkLanes = 3;

// Calls over gRPC, on completion queues. Gathers go over long-lived streams,
// each with a connection of its own: some for gathers of decode size (GetTable
// and WatchPartitions use the first of them too), others for larger ones. So
// small gathers never wait behind large ones. Among its kind a gather takes the
// lane on which the fewest bytes are awaited. Lazy: connects with the first
// call, and a stream with its first gather or WarmUp.
//
// Keeps the loops for as long as it lives.
std::unique_ptr<TableTransport> MakeGrpcTableTransport(
    const std::string& address, std::shared_ptr<ClientLoops> loops);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_

#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_

#include <memory>
#include <string>

#include "engram_client/rpc/table_transport.h"

namespace engram {

// Calls over one gRPC channel of its own, by the callback API. Lazy: connects
// with the first call.
std::unique_ptr<TableTransport> MakeGrpcTableTransport(
    const std::string& address);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GRPC_TABLE_TRANSPORT_H_

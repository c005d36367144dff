#ifndef ENGRAM_ENGRAM_CLIENT_RPC_LANE_MESSAGES_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_LANE_MESSAGES_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/wire/piece_reader.h"

namespace engram {

// What a lane says and hears besides gathers and rows.

// "/engram.v1.TableService/GatherStream".
const std::string& GatherStreamMethod();

// A message that cancels the call; of a call that never was, it does nothing.
grpc::ByteBuffer CancelBuffer(uint64_t call_id);

// The error of a message of that kind; DATA_LOSS where it has none.
absl::Status ErrorOf(const PieceMessage& message);

// What the end of a stream says of each of its gathers. A fault of one of them,
// or of the connection, is none of the others: they may be sent again.
absl::Status OfOneGather(const absl::Status& stream_status);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_LANE_MESSAGES_H_

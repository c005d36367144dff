#ifndef ENGRAM_CORE_RPC_CHANNEL_H_
#define ENGRAM_CORE_RPC_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace engram {

// Largest message that servers and clients of this project accept. Far above
// what one call may carry (limits are checked per call, with TOO_LARGE), low
// enough that a hostile length is refused.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Largest header or trailer block: room for the bitmap details of errors about
// tables far above today's (V4.1 needs 2 kB of it).
inline constexpr int kMaxMetadataBytes = 64 << 10;

// A plaintext channel with a connection of its own (channels of one address
// would otherwise share one), quick reconnects (100 ms .. 2 s) and keepalive.
// Lazy: connects on first use. Never null.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_CHANNEL_H_

#ifndef ENGRAM_TABLE_SERVER_PEERS_PEER_CALLS_H_
#define ENGRAM_TABLE_SERVER_PEERS_PEER_CALLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram/v1/table.pb.h"

namespace engram {

// Calls to other table servers, by address. Errors carry the reasons of
// errors.proto.
//
// Thread safety: all methods may be called concurrently.
class PeerCalls {
 public:
  virtual ~PeerCalls() = default;

  using ExchangeDone =
      absl::AnyInvocable<void(absl::StatusOr<v1::ExchangeResponse>)>;

  // `done` is called exactly once, maybe before this returns, on a thread that
  // it must not block.
  virtual void Exchange(const std::string& address,
                        const v1::ExchangeRequest& request, absl::Time deadline,
                        ExchangeDone done) = 0;

  struct Fetch {
    std::string version;
    PartitionRef ref{};
    uint64_t offset_bytes = 0;  // a multiple of the row size
    absl::Time deadline = absl::InfiniteFuture();
    // The longest that one piece may take.
    absl::Duration stall_timeout = absl::Seconds(10);
    // The fetch ends with CANCELLED soon after this becomes true. May be null.
    const std::atomic<bool>* stop = nullptr;
  };
  // Rows as they come, in order; it may block for a while, to slow the fetch
  // down, and its error ends the fetch and is returned.
  using FetchSink =
      absl::FunctionRef<absl::Status(absl::Span<const std::byte> rows)>;

  // Blocks; not for a thread that calls are served on. DEADLINE_EXCEEDED: the
  // deadline passed, or nothing came for stall_timeout. `sink` is not called
  // any more when it returns.
  virtual absl::Status FetchPartition(const std::string& address,
                                      const Fetch& fetch, FetchSink sink) = 0;

  // Closes the connections to everybody else; calls under way go on.
  virtual void Retain(absl::Span<const std::string> addresses) = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_PEER_CALLS_H_

#ifndef ENGRAM_CORE_RPC_RPC_SERVER_H_
#define ENGRAM_CORE_RPC_RPC_SERVER_H_

#include <grpcpp/impl/codegen/service_type.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/channel.h"
#include "core/rpc/queue_loop.h"
#include "core/rpc/queue_service.h"

namespace engram {

// A listening gRPC server with health checking and reflection: the part that
// table server and compute worker share.
//
// Thread safety: all methods may be called concurrently.
class RpcServer {
 public:
  struct Options {
    std::string listen;  // host:port (port 0 takes a free one) or unix:PATH
    // Caller's; must outlive the server.
    std::vector<grpc::Service*> services;
    // Their full names, for reflection; health is kept for each and for "".
    std::vector<std::string> service_names;
    // Completion queues, each with its own threads: what `queue_service` takes
    // calls from and, on the first, health and reflection. None: one queue with
    // one thread.
    std::vector<QueueLoop::Options> queues;
    QueueService* queue_service = nullptr;        // as `services`; null: none
    int max_receive_bytes = kMaxMessageBytes;     // of one message
    size_t memory_quota_bytes = size_t{1} << 30;  // gRPC's own buffers
    // Who connects and does not say within this time that it speaks HTTP/2 is
    // cut off; later, who answers no ping.
    absl::Duration handshake_timeout = absl::Seconds(10);
    // Where the engram_rpc_* metrics go; null: nowhere.
    std::shared_ptr<prometheus::Registry> metrics;
  };

  // Listening when it returns, health NOT_SERVING. UNAVAILABLE: the address
  // cannot be bound (the message says which and why, e.g. already in use).
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options);
  virtual ~RpcServer() = default;  // shuts down at once

  // The address as bound: the true port in place of 0.
  virtual const std::string& address() const = 0;
  virtual void SetServing(bool serving) = 0;
  // Those of options.queues, for calls that this process makes itself: then no
  // other thread waits for the network. They must have ended before Shutdown.
  virtual std::vector<QueueLoop*> loops() = 0;
  // Stops accepting, lets calls end until `deadline`, then cancels the rest.
  virtual void Shutdown(absl::Time deadline) = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_RPC_SERVER_H_

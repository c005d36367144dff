#ifndef ENGRAM_TABLE_SERVER_PEERS_GRPC_PEER_CALLS_H_
#define ENGRAM_TABLE_SERVER_PEERS_GRPC_PEER_CALLS_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"
#include "engram/v1/table.grpc.pb.h"
#include "table_server/peers/live_calls.h"
#include "table_server/peers/peer_calls.h"

namespace engram {

// Calls over gRPC, on the queues of the server itself, so that no other thread
// of the process waits for the network. A peer has two connections, made when
// they are needed: exchanges never wait behind rows.
//
// Calls before Start and after Stop are CANCELLED.
class GrpcPeerCalls final : public PeerCalls {
 public:
  GrpcPeerCalls();
  ~GrpcPeerCalls() override;  // Stop

  // Calls are made on `loops`, by turns. They must run until Stop has returned.
  // REQUIRES: at least one; not started before.
  void Start(std::vector<QueueLoop*> loops);

  // Ends calls under way with CANCELLED. When it returns, every `done` has been
  // called and nothing uses the loops any more. Not on a thread of a loop.
  void Stop();

  void Exchange(const std::string& address, const v1::ExchangeRequest& request,
                absl::Time deadline, ExchangeDone done) override;
  absl::Status FetchPartition(const std::string& address, const Fetch& fetch,
                              FetchSink sink) override;
  void Retain(absl::Span<const std::string> addresses) override;

 private:
  struct Connection {
    explicit Connection(const std::string& address);

    const std::shared_ptr<grpc::Channel> channel;
    const std::unique_ptr<v1::TableService::Stub> stub;
  };
  struct Peer {
    explicit Peer(const std::string& address)
        : exchanges(address), fetches(address) {}

    Connection exchanges;
    Connection fetches;
  };

  // The next loop; null: not started.
  QueueLoop* NextLoop();
  std::shared_ptr<Peer> PeerAt(const std::string& address);

  const std::shared_ptr<LiveCalls> calls_;
  Mutex mutex_;
  std::vector<QueueLoop*> loops_ ABSL_GUARDED_BY(mutex_);
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<Peer>> peers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_GRPC_PEER_CALLS_H_

#ifndef ENGRAM_TESTS_BENCH_EASY_GRPC_PEER_H_
#define ENGRAM_TESTS_BENCH_EASY_GRPC_PEER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "easy_gather.grpc.pb.h"
#include "tests/bench/row_table.h"

namespace engram::bench {

// The server of the easy gRPC version: the callback API as its examples show
// it, the same prefetched gather, into the reply's `bytes` field.
class EasyGrpcPeer final : public EasyGather::CallbackService {
 public:
  // Listening when it returns. `table` must outlive the peer.
  static absl::StatusOr<std::unique_ptr<EasyGrpcPeer>> Start(
      const RowTable& table);
  ~EasyGrpcPeer() override;

  const std::string& address() const { return address_; }

  grpc::ServerUnaryReactor* Gather(grpc::CallbackServerContext* context,
                                   const EasyGatherRequest* request,
                                   EasyGatherResponse* response) override;

 private:
  explicit EasyGrpcPeer(const RowTable& table) : table_(table) {}

  const RowTable& table_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_EASY_GRPC_PEER_H_

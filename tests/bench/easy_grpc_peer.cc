#include "tests/bench/easy_grpc_peer.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace engram::bench {

absl::StatusOr<std::unique_ptr<EasyGrpcPeer>> EasyGrpcPeer::Start(
    const RowTable& table) {
  std::unique_ptr<EasyGrpcPeer> peer(new EasyGrpcPeer(table));
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(peer.get());
  peer->server_ = builder.BuildAndStart();
  if (peer->server_ == nullptr || port == 0) {
    return absl::UnavailableError("gRPC cannot listen on 127.0.0.1");
  }
  peer->address_ = absl::StrCat("127.0.0.1:", port);
  return peer;
}

EasyGrpcPeer::~EasyGrpcPeer() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

grpc::ServerUnaryReactor* EasyGrpcPeer::Gather(
    grpc::CallbackServerContext* context, const EasyGatherRequest* request,
    EasyGatherResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Span<const uint32_t> indices = request->indices();
  for (const uint32_t index : indices) {
    if (index < table_.row_count()) continue;
    reactor->Finish(
        grpc::Status(grpc::StatusCode::OUT_OF_RANGE,
                     absl::StrCat("row ", index, " of ", table_.row_count())));
    return reactor;
  }
  std::string& rows = *response->mutable_rows();
  rows.resize(indices.size() * table_.row_bytes());
  table_.Gather(indices,
                {reinterpret_cast<std::byte*>(rows.data()), rows.size()});
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace engram::bench

#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_FAKE_CLUSTER_SERVER_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_FAKE_CLUSTER_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "engram/v1/table.grpc.pb.h"

namespace engram::ctl {

// A table server of one layer of ten partitions, which holds those of
// `bitmap`, behind real gRPC.
class FakeClusterServer final : public v1::TableService::Service {
 public:
  FakeClusterServer(const std::string& address, const std::string& name,
                    const std::string& bitmap) {
    table_.set_version("0123456789abcdef");
    table_.set_server_name(name);
    table_.set_instance_id(std::hash<std::string>()(name));
    table_.set_ready(true);
    v1::LayerInfo& layer = *table_.add_layers();
    layer.set_layer_id(14);
    layer.set_partition_count(10);
    held_.set_layer_id(14);
    held_.set_partition_count(10);
    held_.set_bitmap(bitmap);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeClusterServer() override {
    server_->Shutdown(std::chrono::system_clock::now());
  }

  // Set before calls arrive. Without members it is of an older release.
  v1::ExchangeResponse exchange;
  bool draining = false;

  void Sees(const std::string& name, const std::string& address) {
    v1::ExchangeResponse::ViewMember& member = *exchange.add_members();
    member.set_name(name);
    member.set_address(address);
  }

  grpc::Status GetTable(grpc::ServerContext*, const v1::GetTableRequest*,
                        v1::GetTableResponse* response) override {
    *response = table_;
    return grpc::Status::OK;
  }

  grpc::Status WatchPartitions(
      grpc::ServerContext*, const v1::WatchPartitionsRequest*,
      grpc::ServerWriter<v1::WatchPartitionsResponse>* writer) override {
    v1::WatchPartitionsResponse message;
    *message.mutable_snapshot()->add_layers() = held_;
    message.mutable_snapshot()->set_draining(draining);
    writer->Write(message);
    return grpc::Status::OK;
  }

  grpc::Status Exchange(grpc::ServerContext*,
                        const v1::ExchangeRequest* request,
                        v1::ExchangeResponse* response) override {
    if (exchange.members().empty()) {
      return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
    }
    if (!request->server_name().empty()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "not a server");
    }
    *response = exchange;
    response->set_server_name(table_.server_name());
    response->set_instance_id(table_.instance_id());
    response->set_draining(draining);
    *response->add_held() = held_;
    return grpc::Status::OK;
  }

  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest* request,
                     v1::LeaveResponse*) override {
    if (request->server_name() == table_.server_name()) {
      return grpc::Status::OK;
    }
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "another server");
  }

 private:
  v1::GetTableResponse table_;
  v1::LayerPartitions held_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_FAKE_CLUSTER_SERVER_H_

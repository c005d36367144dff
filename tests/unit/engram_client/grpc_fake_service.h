#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/notification.h"
#include "core/wire/gather_crc.h"
#include "engram/v1/table.grpc.pb.h"
#include "engram_client/rpc/fake_table_server.h"

namespace engram {

// A folder that is gone with the object; short, for socket paths.
class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/engram-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string Socket(const std::string& name) const {
    return "unix:" + path_ + "/" + name;
  }

 private:
  std::string path_;
};

// A FakeTable behind real gRPC, holding every partition.
class GrpcFakeService final : public v1::TableService::Service {
 public:
  using ChangeReply = std::function<void(v1::GatherResponse&)>;
  using OnGather = std::function<grpc::Status(grpc::ServerContext&,
                                              const v1::GatherRequest&)>;

  explicit GrpcFakeService(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~GrpcFakeService() override {
    stopping_.Notify();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  // Set before calls arrive.
  ChangeReply change_reply;
  OnGather on_gather;

  grpc::Status GetTable(grpc::ServerContext*, const v1::GetTableRequest*,
                        v1::GetTableResponse* response) override {
    *response = table_.Response("a", 1);
    return grpc::Status::OK;
  }

  grpc::Status WatchPartitions(
      grpc::ServerContext*, const v1::WatchPartitionsRequest*,
      grpc::ServerWriter<v1::WatchPartitionsResponse>* writer) override {
    v1::WatchPartitionsResponse message;
    message.set_epoch(1);
    auto* snapshot = message.mutable_snapshot();
    snapshot->set_version(table_.version);
    snapshot->set_server_name("a");
    snapshot->set_instance_id(1);
    for (const uint32_t layer : {1, 14}) {
      v1::LayerPartitions* partitions = snapshot->add_layers();
      partitions->set_layer_id(layer);
      partitions->set_partition_count(table_.partition_count());
      std::string bitmap((table_.partition_count() + 7) / 8, '\xff');
      bitmap.back() = static_cast<char>(
          0xff >> (bitmap.size() * 8 - table_.partition_count()));
      partitions->set_bitmap(bitmap);
    }
    writer->Write(message);
    stopping_.Wait();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stopping");
  }

  grpc::Status Gather(grpc::ServerContext* context,
                      const v1::GatherRequest* request,
                      v1::GatherResponse* response) override {
    if (on_gather) {
      const grpc::Status status = on_gather(*context, *request);
      if (!status.ok()) return status;
    }
    response->set_version(request->version());
    GatherCrc crc(request->version());
    std::string& rows = *response->mutable_rows();
    for (const v1::LayerRows& layer : request->layers()) {
      const LayerId id{layer.layer_id()};
      crc.AddLayer(id, {layer.row_ids().data(),
                        static_cast<size_t>(layer.row_ids_size())});
      for (const RowId row : layer.row_ids()) {
        rows.resize(rows.size() + FakeTable::kRowBytes);
        FakeTable::WriteRow(
            id, row,
            reinterpret_cast<std::byte*>(rows.data() + rows.size() -
                                         FakeTable::kRowBytes));
      }
    }
    crc.AddRows({reinterpret_cast<const std::byte*>(rows.data()), rows.size()});
    if (request->want_crc32c()) response->set_crc32c(crc.value());
    if (change_reply) change_reply(*response);
    return grpc::Status::OK;
  }

 private:
  const FakeTable table_;
  Notification stopping_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_

#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/wire/error_detail.h"
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
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Socket(const std::string& name) const {
    return "unix:" + File(name);
  }

 private:
  std::string path_;
};

// A FakeTable behind real gRPC, holding every partition. Each gather of a
// stream is answered by a thread of its own.
class GrpcFakeService final : public v1::TableService::Service {
 public:
  struct Gather {
    v1::GatherStreamRequest request;
    std::atomic<bool> cancelled{false};  // or its stream broken
  };
  using ChangePiece = std::function<void(v1::GatherStreamResponse::Piece&)>;
  using OnGather = std::function<grpc::Status(const Gather&)>;
  using Stream = grpc::ServerReaderWriter<v1::GatherStreamResponse,
                                          v1::GatherStreamRequest>;

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
  ChangePiece change_last_piece;
  OnGather on_gather;
  size_t piece_bytes = 1000;

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

  grpc::Status GatherStream(grpc::ServerContext*, Stream* stream) override {
    std::map<uint64_t, std::shared_ptr<Gather>> gathers;
    std::vector<std::thread> threads;
    Mutex writing;
    v1::GatherStreamRequest request;
    while (stream->Read(&request)) {
      if (request.has_cancel()) {
        const auto cancelled = gathers.find(request.call_id());
        if (cancelled != gathers.end()) cancelled->second->cancelled = true;
        continue;
      }
      auto& gather = gathers[request.call_id()];
      gather = std::make_shared<Gather>();
      gather->request = request;
      threads.emplace_back([this, gather, stream, &writing] {
        Answer(*gather, stream, writing);
      });
    }
    for (const auto& [id, gather] : gathers) gather->cancelled = true;
    for (std::thread& thread : threads) thread.join();
    return grpc::Status::OK;
  }

 private:
  void Answer(const Gather& gather, Stream* stream, Mutex& writing) const {
    const grpc::Status status =
        on_gather ? on_gather(gather) : grpc::Status::OK;
    v1::GatherStreamResponse response;
    response.set_call_id(gather.request.call_id());
    if (!status.ok()) {
      *response.mutable_error() = ToRpcStatusProto(FromGrpcStatus(status));
      MutexLock lock(&writing);
      stream->Write(response);
      return;
    }
    v1::GatherStreamResponse::Piece& piece = *response.mutable_piece();
    std::string rows = Fill(gather.request.gather(), piece);
    for (; rows.size() > piece_bytes; rows.erase(0, piece_bytes)) {
      v1::GatherStreamResponse early;
      early.set_call_id(gather.request.call_id());
      early.mutable_piece()->set_rows(rows.substr(0, piece_bytes));
      MutexLock lock(&writing);
      stream->Write(early);
    }
    piece.set_rows(rows);
    if (change_last_piece) change_last_piece(piece);
    MutexLock lock(&writing);
    stream->Write(response);
  }

  // All rows; `last` gets the rest of what the last piece has.
  static std::string Fill(const v1::GatherRequest& request,
                          v1::GatherStreamResponse::Piece& last) {
    std::string rows;
    GatherCrc crc(request.version());
    for (const v1::LayerRows& layer : request.layers()) {
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
    last.set_last(true);
    last.set_version(request.version());
    if (request.want_crc32c()) last.set_crc32c(crc.value());
    return rows;
  }

  const FakeTable table_;
  Notification stopping_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GRPC_FAKE_SERVICE_H_

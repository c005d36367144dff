#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_RAW_GATHER_SERVICE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_RAW_GATHER_SERVICE_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "engram/v1/table.pb.h"

namespace engram {

// GatherStream as a script plays it: in bytes, so that it may say anything.
class RawGatherService final : public grpc::Service {
 public:
  using RawStream =
      grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  class Stream {
   public:
    Stream(RawStream* stream, int number) : stream_(stream), number_(number) {}

    int number() const { return number_; }  // 1: the first of the service

    // False: the caller has ended the stream.
    bool Read(v1::GatherStreamRequest* request) {
      grpc::ByteBuffer buffer;
      if (!stream_->Read(&buffer)) return false;
      grpc::Slice slice;
      return buffer.DumpToSingleSlice(&slice).ok() &&
             request->ParseFromArray(slice.begin(),
                                     static_cast<int>(slice.size()));
    }
    v1::GatherStreamRequest Read() {
      v1::GatherStreamRequest request;
      Read(&request);
      return request;
    }
    void ReadToTheEnd() {
      grpc::ByteBuffer buffer;
      while (stream_->Read(&buffer)) buffer.Clear();
    }

    void Write(absl::string_view bytes) {
      const grpc::Slice slice(bytes.data(), bytes.size());
      stream_->Write(grpc::ByteBuffer(&slice, 1));
    }
    void Write(const v1::GatherStreamResponse& response) {
      Write(response.SerializeAsString());
    }
    void WritePiece(uint64_t call_id, absl::string_view rows) {
      Write(Piece(call_id, rows));
    }
    void WriteLastPiece(uint64_t call_id, absl::string_view rows,
                        absl::string_view version = "v") {
      auto response = Piece(call_id, rows);
      response.mutable_piece()->set_last(true);
      response.mutable_piece()->set_version(std::string(version));
      Write(response);
    }

   private:
    static v1::GatherStreamResponse Piece(uint64_t call_id,
                                          absl::string_view rows) {
      v1::GatherStreamResponse response;
      response.set_call_id(call_id);
      response.mutable_piece()->set_rows(std::string(rows));
      return response;
    }

    RawStream* const stream_;
    const int number_;
  };
  using Script = std::function<grpc::Status(Stream&)>;

  RawGatherService(const std::string& address, Script script)
      : script_(std::move(script)) {
    AddMethod(new grpc::internal::RpcServiceMethod(
        "/engram.v1.TableService/GatherStream",
        grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<
            RawGatherService, grpc::ByteBuffer, grpc::ByteBuffer>(
            [](RawGatherService* service, grpc::ServerContext*,
               RawStream* raw) {
              Stream stream(raw, ++service->streams_);
              return service->script_(stream);
            },
            this)));
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~RawGatherService() override {
    server_->Shutdown(std::chrono::system_clock::now());
  }

  int streams() const { return streams_; }  // that have begun

 private:
  const Script script_;
  std::atomic<int> streams_{0};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_RAW_GATHER_SERVICE_H_

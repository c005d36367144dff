#include "engram_client/rpc/grpc_table_transport.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_crc.h"
#include "engram/v1/table.grpc.pb.h"
#include "engram_client/rpc/call_set.h"

namespace engram {
namespace {

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  if (deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(deadline));
  }
}

class GrpcCall : public TransportCall {
 public:
  void Cancel() override { context.TryCancel(); }

  grpc::ClientContext context;
};

struct TableCall final : GrpcCall {
  v1::GetTableRequest request;
  v1::GetTableResponse response;
  TableTransport::TableDone done;
};

struct GatherCall final : GrpcCall {
  v1::GatherRequest request;
  v1::GatherResponse response;
  uint64_t reply_bytes = 0;
  std::shared_ptr<RowSink> sink;
  TableTransport::StatusDone done;

  absl::Status CheckResponse() const;
};

absl::Span<const std::byte> RowsOf(const v1::GatherResponse& response) {
  return {reinterpret_cast<const std::byte*>(response.rows().data()),
          response.rows().size()};
}

uint32_t CrcOf(const v1::GatherRequest& request,
               const v1::GatherResponse& response) {
  GatherCrc crc(request.version());
  for (const v1::LayerRows& layer : request.layers()) {
    crc.AddLayer(
        LayerId{layer.layer_id()},
        {layer.row_ids().data(), static_cast<size_t>(layer.row_ids().size())});
  }
  crc.AddRows(RowsOf(response));
  return crc.value();
}

absl::Status GatherCall::CheckResponse() const {
  if (response.version() != request.version()) {
    return absl::DataLossError(absl::StrCat("reply is of table '",
                                            response.version(), "', not ",
                                            request.version()));
  }
  if (response.rows().size() != reply_bytes) {
    return absl::DataLossError(
        absl::StrCat("reply has ", response.rows().size(),
                     " bytes of rows, not ", reply_bytes));
  }
  if (request.want_crc32c() && CrcOf(request, response) != response.crc32c()) {
    return absl::DataLossError(absl::StrCat(
        "CRC32C of the reply is ", absl::Hex(CrcOf(request, response)),
        ", the server sent ", absl::Hex(response.crc32c())));
  }
  return absl::OkStatus();
}

v1::GatherRequest ToProto(const TableTransport::GatherRequest& request) {
  v1::GatherRequest proto;
  proto.set_version(std::string(request.version));
  proto.set_want_crc32c(request.want_crc32c);
  v1::LayerRows* rows = nullptr;
  for (const TableTransport::RowRun& run : request.runs) {
    if (rows == nullptr || rows->layer_id() != ToInt(run.layer)) {
      rows = proto.add_layers();
      rows->set_layer_id(ToInt(run.layer));
    }
    rows->mutable_row_ids()->Add(run.row_ids.begin(), run.row_ids.end());
  }
  return proto;
}

// Owned by the call set until OnDone.
class WatchCall final
    : public GrpcCall,
      public grpc::ClientReadReactor<v1::WatchPartitionsResponse> {
 public:
  WatchCall(CallSet* calls, TableTransport::WatchEvent on_message,
            TableTransport::StatusDone done)
      : calls_(calls),
        on_message_(std::move(on_message)),
        done_(std::move(done)) {}

  void Start(v1::TableService::Stub& stub) {
    stub.async()->WatchPartitions(&context, &request_, this);
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    on_message_(message_);
    message_.Clear();
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    done_(FromGrpcStatus(status));
    calls_->Remove(this);
  }

 private:
  CallSet* const calls_;
  const TableTransport::WatchEvent on_message_;
  TableTransport::StatusDone done_;
  v1::WatchPartitionsRequest request_;
  v1::WatchPartitionsResponse message_;
};

// Calls belong to the set alone, from before they start: see CallSet.
class GrpcTableTransport final : public TableTransport {
 public:
  explicit GrpcTableTransport(const std::string& address)
      : channel_(MakeChannel(address)),
        stub_(v1::TableService::NewStub(channel_)) {}

  ~GrpcTableTransport() override { calls_.CancelAllAndWait(); }

  std::shared_ptr<TransportCall> GetTable(absl::Time deadline,
                                          TableDone done) override {
    // The caller has its own backoff; the channel's would come on top.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    auto owned = std::make_shared<TableCall>();
    TableCall* const call = owned.get();
    SetDeadline(call->context, deadline);
    call->done = std::move(done);
    auto handle = calls_.Add(std::move(owned));
    stub_->async()->GetTable(&call->context, &call->request, &call->response,
                             [this, call](const grpc::Status& status) {
                               if (status.ok()) {
                                 call->done(std::move(call->response));
                               } else {
                                 call->done(FromGrpcStatus(status));
                               }
                               calls_.Remove(call);
                             });
    return handle;
  }

  std::shared_ptr<TransportCall> WatchPartitions(WatchEvent on_message,
                                                 StatusDone done) override {
    auto owned = std::make_shared<WatchCall>(&calls_, std::move(on_message),
                                             std::move(done));
    WatchCall* const call = owned.get();
    auto handle = calls_.Add(std::move(owned));
    call->Start(*stub_);
    return handle;
  }

  std::shared_ptr<TransportCall> Gather(const GatherRequest& request,
                                        std::shared_ptr<RowSink> sink,
                                        StatusDone done) override {
    auto owned = std::make_shared<GatherCall>();
    GatherCall* const call = owned.get();
    SetDeadline(call->context, request.deadline);
    call->request = ToProto(request);
    call->reply_bytes = request.reply_bytes;
    call->sink = std::move(sink);
    call->done = std::move(done);
    auto handle = calls_.Add(std::move(owned));
    stub_->async()->Gather(&call->context, &call->request, &call->response,
                           [this, call](const grpc::Status& grpc_status) {
                             absl::Status status = FromGrpcStatus(grpc_status);
                             if (status.ok()) status = call->CheckResponse();
                             if (status.ok())
                               call->sink->Append(RowsOf(call->response));
                             call->done(std::move(status));
                             calls_.Remove(call);
                           });
    return handle;
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::TableService::Stub> stub_;
  CallSet calls_;
};

}  // namespace

std::unique_ptr<TableTransport> MakeGrpcTableTransport(
    const std::string& address) {
  return std::make_unique<GrpcTableTransport>(address);
}

}  // namespace engram

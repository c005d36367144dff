#include "engram_client/ctl/table_calls.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"

namespace engram::ctl {
namespace {

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  context.set_deadline(absl::ToChronoTime(deadline));
}

}  // namespace

TableCalls::TableCalls(const std::string& address)
    : stub_(v1::TableService::NewStub(MakeChannel(address))) {}

absl::StatusOr<v1::GetTableResponse> TableCalls::GetTable(absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::GetTableResponse response;
  ENGRAM_RETURN_IF_ERROR(
      FromGrpcStatus(stub_->GetTable(&context, {}, &response)));
  return response;
}

absl::StatusOr<v1::WatchPartitionsResponse::Snapshot> TableCalls::Snapshot(
    absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  const auto reader = stub_->WatchPartitions(&context, {});
  v1::WatchPartitionsResponse response;
  if (!reader->Read(&response)) {
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) return status;
    return absl::InternalError("the server ended the watch of its partitions");
  }
  context.TryCancel();
  v1::WatchPartitionsResponse rest;
  while (reader->Read(&rest)) {
  }
  reader->Finish();
  if (!response.has_snapshot()) {
    return absl::InternalError(
        "the watch of partitions did not begin with a snapshot");
  }
  return std::move(*response.mutable_snapshot());
}

absl::StatusOr<v1::ExchangeResponse> TableCalls::Exchange(absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::ExchangeResponse response;
  ENGRAM_RETURN_IF_ERROR(
      FromGrpcStatus(stub_->Exchange(&context, {}, &response)));
  return response;
}

absl::Status TableCalls::Leave(const std::string& server_name,
                               absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::LeaveRequest request;
  request.set_server_name(server_name);
  v1::LeaveResponse response;
  return FromGrpcStatus(stub_->Leave(&context, request, &response));
}

}  // namespace engram::ctl

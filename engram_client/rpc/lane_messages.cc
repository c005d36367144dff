#include "engram_client/rpc/lane_messages.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_request.h"
#include "engram/v1/table.pb.h"

namespace engram {
namespace {

std::string MethodName() {
  const auto* const service =
      v1::GatherStreamRequest::descriptor()->file()->FindServiceByName(
          "TableService");
  return absl::StrCat("/", service->full_name(), "/",
                      service->FindMethodByName("GatherStream")->name());
}

}  // namespace

const std::string& GatherStreamMethod() {
  static const std::string& method = *new std::string(MethodName());
  return method;
}

grpc::ByteBuffer CancelBuffer(uint64_t call_id) {
  const ShortMessage message = CancelMessage(call_id);
  const grpc::Slice slice(message.bytes.data(), message.size);
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status ErrorOf(const PieceMessage& message) {
  google::rpc::Status proto;
  if (!proto.ParseFromString(message.error)) {
    return absl::DataLossError("the error of a gather cannot be decoded");
  }
  absl::Status status = FromRpcStatusProto(proto);
  if (status.ok()) return absl::DataLossError("a gather failed with OK");
  return status;
}

absl::Status OfOneGather(const absl::Status& stream_status) {
  switch (stream_status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
      return stream_status;
    default:
      break;
  }
  if (ReasonOf(stream_status) != ErrorReason::kNone) return stream_status;
  return absl::UnavailableError(
      absl::StrCat("stream ended with ", stream_status.ToString()));
}

}  // namespace engram

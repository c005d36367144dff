#ifndef ENGRAM_CORE_WIRE_ERROR_DETAIL_H_
#define ENGRAM_CORE_WIRE_ERROR_DETAIL_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "google/rpc/status.pb.h"

namespace engram {

// Reasons of engram/v1/errors.proto. They travel as google.rpc.ErrorInfo in
// the payloads of an absl::Status, so that a status keeps them on its way
// through the process and over the wire.
enum class ErrorReason {
  kNone,  // no reason attached, or one of another domain or release
  kWrongTable,
  kPartitionNotHere,
  kRowOutOfRange,
  kUnknownLayer,
  kOverloaded,
  kDraining,
  kTooLarge,
  kNotReady,
};

// As errors.proto writes it: "OVERLOADED". Empty for kNone.
absl::string_view ReasonName(ErrorReason reason);

// A status of the code that errors.proto gives `reason`. REQUIRES: not kNone.
absl::Status MakeError(
    ErrorReason reason, absl::string_view message,
    std::vector<std::pair<std::string, std::string>> metadata = {});

ErrorReason ReasonOf(const absl::Status& status);

// Value of one metadata key of the status's ErrorInfo, empty if absent.
std::string MetadataOf(const absl::Status& status, absl::string_view key);

// Attaches RetryInfo.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

// PARTITION_NOT_HERE of `server`. The message names the first few of `missing`,
// the detail has all. `partition_counts` gives each layer's bitmap its size.
absl::Status PartitionNotHereError(
    absl::string_view server, absl::Span<const PartitionRef> missing,
    absl::Span<const std::pair<LayerId, uint32_t>> partition_counts);

// Every partition that a PARTITION_NOT_HERE lists, sorted; empty for other
// statuses and for details that do not parse.
std::vector<PartitionRef> MissingPartitionsOf(const absl::Status& status);

// All payloads of `status` as details, and back. A message with an unknown
// code becomes UNKNOWN.
google::rpc::Status ToRpcStatusProto(const absl::Status& status);
absl::Status FromRpcStatusProto(const google::rpc::Status& proto);

// The same over grpc::Status, whose codes are the same numbers. Templates, so
// that this folder needs no gRPC.
template <typename GrpcStatus>
GrpcStatus ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return GrpcStatus();
  const google::rpc::Status proto = ToRpcStatusProto(status);
  using Code = decltype(GrpcStatus().error_code());
  return GrpcStatus(
      static_cast<Code>(proto.code()), proto.message(),
      proto.details().empty() ? std::string() : proto.SerializeAsString());
}

template <typename GrpcStatus>
absl::Status FromGrpcStatus(const GrpcStatus& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status proto;
  if (!proto.ParseFromString(status.error_details())) proto.Clear();
  proto.set_code(static_cast<int>(status.error_code()));
  proto.set_message(status.error_message());
  return FromRpcStatusProto(proto);
}

}  // namespace engram

#endif  // ENGRAM_CORE_WIRE_ERROR_DETAIL_H_

#include "core/wire/error_detail.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"

namespace engram {
namespace {

constexpr absl::string_view kDomain = "engram.v1";
constexpr absl::string_view kTypePrefix = "type.googleapis.com/";
constexpr absl::string_view kErrorInfoUrl =
    "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kRetryInfoUrl =
    "type.googleapis.com/google.rpc.RetryInfo";
constexpr absl::string_view kNotHereUrl =
    "type.googleapis.com/engram.v1.PartitionNotHere";

// Larger details are taken for absent: a peer's bitmap of this size already
// unfolds to 64 MiB of partitions.
constexpr size_t kMaxDetailBytes = size_t{1} << 20;

struct ReasonEntry {
  ErrorReason reason;
  absl::string_view name;
  absl::StatusCode code;
};

constexpr std::array kReasons = {
    ReasonEntry{ErrorReason::kWrongTable, "WRONG_TABLE",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{ErrorReason::kPartitionNotHere, "PARTITION_NOT_HERE",
                absl::StatusCode::kUnavailable},
    ReasonEntry{ErrorReason::kRowOutOfRange, "ROW_OUT_OF_RANGE",
                absl::StatusCode::kOutOfRange},
    ReasonEntry{ErrorReason::kUnknownLayer, "UNKNOWN_LAYER",
                absl::StatusCode::kNotFound},
    ReasonEntry{ErrorReason::kOverloaded, "OVERLOADED",
                absl::StatusCode::kResourceExhausted},
    ReasonEntry{ErrorReason::kDraining, "DRAINING",
                absl::StatusCode::kUnavailable},
    ReasonEntry{ErrorReason::kTooLarge, "TOO_LARGE",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{ErrorReason::kNotReady, "NOT_READY",
                absl::StatusCode::kUnavailable},
};

const ReasonEntry& EntryOf(ErrorReason reason) {
  const auto* entry = std::find_if(
      kReasons.begin(), kReasons.end(),
      [&](const ReasonEntry& candidate) { return candidate.reason == reason; });
  ENGRAM_CHECK(entry != kReasons.end());
  return *entry;
}

template <typename Message>
std::optional<Message> PayloadOf(const absl::Status& status,
                                 absl::string_view type_url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(type_url);
  if (!payload.has_value() || payload->size() > kMaxDetailBytes) {
    return std::nullopt;
  }
  Message message;
  if (!message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

void SetPayload(absl::Status& status, absl::string_view type_url,
                const google::protobuf::MessageLite& message) {
  status.SetPayload(type_url, absl::Cord(message.SerializeAsString()));
}

std::string FirstFew(absl::Span<const PartitionRef> partitions) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (const PartitionRef& ref :
       partitions.subspan(0, std::min(kNamed, partitions.size()))) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "layer ", ToInt(ref.layer),
                    " partition ", ToInt(ref.partition));
  }
  if (partitions.size() > kNamed) {
    absl::StrAppend(&text, " and ", partitions.size() - kNamed, " more");
  }
  return text;
}

}  // namespace

absl::string_view ReasonName(ErrorReason reason) {
  return reason == ErrorReason::kNone ? absl::string_view()
                                      : EntryOf(reason).name;
}

absl::Status MakeError(
    ErrorReason reason, absl::string_view message,
    std::vector<std::pair<std::string, std::string>> metadata) {
  const ReasonEntry& entry = EntryOf(reason);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(entry.name));
  info.set_domain(std::string(kDomain));
  for (auto& [key, value] : metadata) {
    (*info.mutable_metadata())[key] = std::move(value);
  }
  absl::Status status(entry.code, message);
  SetPayload(status, kErrorInfoUrl, info);
  return status;
}

ErrorReason ReasonOf(const absl::Status& status) {
  const auto info = PayloadOf<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  if (!info.has_value() || info->domain() != kDomain) return ErrorReason::kNone;
  for (const ReasonEntry& entry : kReasons) {
    if (info->reason() == entry.name) return entry.reason;
  }
  return ErrorReason::kNone;
}

std::string MetadataOf(const absl::Status& status, absl::string_view key) {
  const auto info = PayloadOf<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  if (!info.has_value()) return "";
  const auto found = info->metadata().find(std::string(key));
  return found == info->metadata().end() ? "" : found->second;
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  google::rpc::RetryInfo info;
  const int64_t seconds = absl::IDivDuration(delay, absl::Seconds(1), &delay);
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  SetPayload(status, kRetryInfoUrl, info);
  return status;
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const auto info = PayloadOf<google::rpc::RetryInfo>(status, kRetryInfoUrl);
  if (!info.has_value()) return std::nullopt;
  return std::max(absl::ZeroDuration(),
                  absl::Seconds(info->retry_delay().seconds()) +
                      absl::Nanoseconds(info->retry_delay().nanos()));
}

absl::Status PartitionNotHereError(
    absl::string_view server, absl::Span<const PartitionRef> missing,
    absl::Span<const std::pair<LayerId, uint32_t>> partition_counts) {
  absl::Status status = MakeError(
      ErrorReason::kPartitionNotHere,
      absl::StrCat("server ", server, " does not hold ", FirstFew(missing)),
      {{"server", std::string(server)},
       {"count", absl::StrCat(missing.size())}});
  v1::PartitionNotHere detail;
  *detail.mutable_missing() = ToLayerPartitions(missing, partition_counts);
  SetPayload(status, kNotHereUrl, detail);
  return status;
}

std::vector<PartitionRef> MissingPartitionsOf(const absl::Status& status) {
  std::vector<PartitionRef> missing;
  const auto detail = PayloadOf<v1::PartitionNotHere>(status, kNotHereUrl);
  if (!detail.has_value()) return missing;
  for (const v1::LayerPartitions& layer : detail->missing()) {
    const uint64_t bits =
        std::min<uint64_t>(layer.partition_count(), layer.bitmap().size() * 8);
    for (uint32_t p = 0; p < bits; ++p) {
      if ((layer.bitmap()[p / 8] >> p % 8 & 1) == 0) continue;
      missing.push_back({LayerId{layer.layer_id()}, PartitionId{p}});
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

google::rpc::Status ToRpcStatusProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  status.ForEachPayload(
      [&](absl::string_view type_url, const absl::Cord& payload) {
        google::protobuf::Any* detail = proto.add_details();
        detail->set_type_url(std::string(type_url));
        detail->set_value(std::string(payload));
      });
  return proto;
}

absl::Status FromRpcStatusProto(const google::rpc::Status& proto) {
  if (proto.code() == 0) return absl::OkStatus();
  const bool known = proto.code() > 0 && proto.code() <= 16;
  absl::Status status(known ? static_cast<absl::StatusCode>(proto.code())
                            : absl::StatusCode::kUnknown,
                      proto.message());
  for (const google::protobuf::Any& detail : proto.details()) {
    if (!absl::StartsWith(detail.type_url(), kTypePrefix)) continue;
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

}  // namespace engram

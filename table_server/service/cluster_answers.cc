#include "table_server/service/cluster_answers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/membership/member.h"
#include "core/wire/layer_partitions.h"
#include "table_server/gather/request_errors.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/service/messages.h"

namespace engram {
namespace {

constexpr size_t kMaxDigestBytes = 64;

absl::Status CheckSize(const char* what, size_t size, size_t limit) {
  if (size <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " of ", size, ", the limit is ", limit));
}

// A name that is too long is not worth an echo.
absl::Status CheckName(const std::string& name) {
  ENGRAM_RETURN_IF_ERROR(
      CheckSize("a server name's bytes", name.size(), kMaxServerNameBytes));
  return CheckServerName(name);
}

absl::Status CheckCaller(const v1::ExchangeRequest& request) {
  ENGRAM_RETURN_IF_ERROR(CheckSize(
      "a view digest's bytes", request.view_digest().size(), kMaxDigestBytes));
  if (!request.server_name().empty()) return CheckName(request.server_name());
  if (request.to_free_size() == 0 && request.departures_size() == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "partitions to free or departures from a caller without a server name");
}

absl::Status CheckDepartures(const v1::ExchangeRequest& request) {
  ENGRAM_RETURN_IF_ERROR(CheckSize(
      "a number of departures", static_cast<size_t>(request.departures_size()),
      MemberTracker::kMaxDepartures));
  for (const v1::Departure& departure : request.departures()) {
    ENGRAM_RETURN_IF_ERROR(CheckName(departure.server_name()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerExchange(const ServiceContext& service, bool ready,
                            const v1::ExchangeRequest& request,
                            v1::ExchangeResponse& response) {
  ENGRAM_RETURN_IF_ERROR(CheckVersion(request.version(), service.manifest));
  ENGRAM_RETURN_IF_ERROR(CheckCaller(request));
  ENGRAM_RETURN_IF_ERROR(CheckDepartures(request));
  ENGRAM_ASSIGN_OR_RETURN(
      const std::vector<PartitionRef> to_free,
      FromLayerPartitions(request.to_free(),
                          service.manifest.PartitionCounts()));
  response.set_version(service.manifest.version());
  response.set_server_name(service.server_name);
  response.set_instance_id(service.instance_id);
  response.set_ready(ready);
  PartitionSet::Snapshot snapshot = service.partitions.TakeSnapshot();
  response.set_draining(snapshot.draining);
  *response.mutable_held() = ToLayerPartitions(std::move(snapshot.layers));
  if (service.cluster == nullptr) return absl::OkStatus();
  return service.cluster->Exchange(request, to_free, response);
}

absl::Status AnswerLeave(const ServiceContext& service,
                         const v1::LeaveRequest& request) {
  ENGRAM_RETURN_IF_ERROR(CheckName(request.server_name()));
  if (request.server_name() != service.server_name) {
    return absl::NotFoundError(absl::StrCat("server ", request.server_name(),
                                            " is asked to leave, this is ",
                                            service.server_name));
  }
  if (service.cluster == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("server ", service.server_name, " is in no cluster"));
  }
  return service.cluster->Leave(request);
}

}  // namespace engram

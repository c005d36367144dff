#include "table_server/service/gather_call.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_crc.h"
#include "table_server/gather/call_guard.h"

namespace engram {

grpc::ServerUnaryReactor* GatherCall::Start(
    ServiceContext& service, grpc::CallbackServerContext& context,
    const v1::GatherRequest& request, v1::GatherResponse& response) {
  auto* call = new GatherCall(service, absl::FromChrono(context.deadline()),
                              request, response);
  const absl::Status admitted = call->Admit();
  if (!admitted.ok()) call->End(admitted);
  return call;
}

GatherCall::GatherCall(ServiceContext& service, absl::Time deadline,
                       const v1::GatherRequest& request,
                       v1::GatherResponse& response)
    : service_(service),
      arrived_(service.clock.Now()),
      deadline_(deadline),
      request_(request),
      response_(response) {}

absl::Status GatherCall::Admit() {
  if (!service_.accepting.load()) return service_.DrainingError();
  ENGRAM_RETURN_IF_ERROR(CheckLayerCount(request_.layers_size()));
  const uint64_t rows = RowCountOf(request_);
  // What is too large for a gather is for Run to refuse; it holds no reply.
  const uint64_t reply_rows = rows > service_.gatherer.max_rows() ? 0 : rows;
  ENGRAM_ASSIGN_OR_RETURN(
      ticket_,
      service_.admission.Enter(request_.SpaceUsedLong() +
                               reply_rows * service_.gatherer.row_bytes()));
  if (!service_.pool.TryAdd([this] { End(Run()); })) {
    return WithRetryAfter(
        MakeError(ErrorReason::kOverloaded, "the queue of gathers is full"),
        service_.limits.retry_after);
  }
  return absl::OkStatus();
}

absl::Status GatherCall::Run() {
  const CallGuard guard(deadline_, cancelled_, service_.clock);
  const std::vector<LayerRowIds> layers = RowIdsOf(request_);
  ENGRAM_RETURN_IF_ERROR(service_.gatherer.Gather(
      request_.version(), layers, guard, *response_.mutable_rows()));
  reply_bytes_ = response_.rows().size();
  response_.set_version(service_.manifest.version());
  if (request_.want_crc32c()) {
    GatherCrc crc = StartCrc(response_.version(), layers);
    crc.AddRows(absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(response_.rows().data()),
        response_.rows().size()));
    response_.set_crc32c(crc.value());
  }
  return absl::OkStatus();
}

void GatherCall::End(const absl::Status& status) {
  code_ = status.code();
  Finish(ToGrpcStatus<grpc::Status>(status));
}

void GatherCall::OnDone() {
  service_.metrics.GatherEnded(
      TableMethod::kGather, code_, service_.clock.Now() - arrived_,
      reply_bytes_ / service_.gatherer.row_bytes(), reply_bytes_);
  delete this;
}

}  // namespace engram

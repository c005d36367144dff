#include "compute/worker/apply_call.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

StepSpec SpecOf(const v1::ApplyRequest& request, const CallerId& caller) {
  StepSpec spec;
  spec.caller = caller;
  spec.version = request.version();
  spec.sequences = request.sequences();
  spec.dtype = request.dtype();
  spec.return_kind = request.return_kind();
  for (const v1::LayerStreams& layer : request.layers()) {
    spec.layers.push_back(LayerId{layer.layer_id()});
  }
  return spec;
}

}  // namespace

grpc::ServerUnaryReactor* ApplyCall::Start(StepEngine* engine,
                                           uint64_t max_bytes,
                                           grpc::CallbackServerContext* context,
                                           const v1::ApplyRequest* request,
                                           v1::ApplyResponse* response) {
  const auto call = std::shared_ptr<ApplyCall>(
      new ApplyCall(engine, CallerId{context->peer()}, request, response));
  call->self_ = call;
  const absl::Status reserved = call->Reserve(max_bytes);
  if (reserved.ok()) {
    call->Begin(absl::FromChrono(context->deadline()));
  } else {
    call->OnEnd(reserved);
  }
  return call.get();
}

absl::Status ApplyCall::Reserve(uint64_t max_bytes) {
  const uint64_t bytes = request_->ByteSizeLong();
  if (bytes > max_bytes) {
    return MakeError(
        ErrorReason::kTooLarge,
        absl::StrCat("the request has ", bytes, " bytes; the limit is ",
                     max_bytes, ": use Forward, where streams come in chunks"),
        {{"what", "message"},
         {"value", absl::StrCat(bytes)},
         {"limit", absl::StrCat(max_bytes)}});
  }
  ENGRAM_ASSIGN_OR_RETURN(reserved_, engine_->ReserveStreams(caller_, bytes));
  return absl::OkStatus();
}

void ApplyCall::Begin(absl::Time deadline) {
  auto begun =
      engine_->Begin(SpecOf(*request_, caller_), deadline, shared_from_this());
  if (!begun.ok()) return OnEnd(begun.status());
  const std::shared_ptr<Step> step = *std::move(begun);
  for (const v1::LayerStreams& layer : request_->layers()) {
    response_->add_layers()->set_layer_id(layer.layer_id());
  }
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    step_ = step;
    cancelled = cancelled_;
  }
  if (cancelled) return step->Cancel();
  absl::Status status = CheckStreamBytes(step->request());
  if (!status.ok()) {
    step->Fail(std::move(status));
    return;
  }
  step->Start();
  for (const v1::LayerStreams& layer : request_->layers()) {
    // No owner: the request is reserved and outlives the step (see OnEnd).
    step->AddChunk(
        LayerId{layer.layer_id()},
        {.first_token = 0,
         .streams = {reinterpret_cast<const std::byte*>(layer.streams().data()),
                     layer.streams().size()}});
  }
}

absl::Status ApplyCall::CheckStreamBytes(const StepRequest& step) const {
  const EngramConfig& config = engine_->block().config();
  const uint64_t token_bytes = TokenStreamBytes(config, step.dtype());
  for (const v1::LayerStreams& layer : request_->layers()) {
    if (layer.streams().size() == step.tokens() * token_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "layer ", layer.layer_id(), " brings ", layer.streams().size(),
        " bytes of streams; ", step.tokens(), " tokens of ", config.hc_mult,
        " x ", config.dim, " values are ", step.tokens() * token_bytes));
  }
  return absl::OkStatus();
}

void ApplyCall::OnResult(StepChunkResult result) {
  // Looked up in the request: other layers' results are being written.
  for (int i = 0; i < request_->layers_size(); ++i) {
    if (request_->layers(i).layer_id() != result.result.layer_id()) continue;
    *response_->mutable_layers(i) = std::move(result.result);
    return;
  }
}

void ApplyCall::OnEnd(const absl::Status& status) {
  engine_->metrics().CallEnded("Apply", status.code());
  response_->set_version(engine_->options().version);
  Finish(ToGrpcStatus<grpc::Status>(status));
}

void ApplyCall::OnCancel() {
  std::shared_ptr<Step> step;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    step = step_;
  }
  if (step != nullptr) step->Cancel();
}

void ApplyCall::OnDone() {
  {
    // The step holds this call as its observer, and this holds the step.
    MutexLock lock(&mutex_);
    step_ = nullptr;
  }
  reserved_ = {};
  const std::shared_ptr<ApplyCall> last = std::move(self_);
}

}  // namespace engram

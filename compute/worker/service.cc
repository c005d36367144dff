#include "compute/worker/service.h"

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "compute/worker/apply_call.h"
#include "compute/worker/forward_call.h"
#include "core/base/status_macros.h"
#include "core/model/config.h"
#include "core/wire/error_detail.h"

namespace engram {

ComputeServiceImpl::ComputeServiceImpl(const Options& options)
    : options_(options), forward_share_(options.max_forward_streams) {
  const StepEngine::Options& engine = options_.engine->options();
  engine.metrics->SetLimits(
      engine.max_steps_in_flight, engine.max_prefetched_bytes,
      engine.max_stream_bytes, options_.max_forward_streams);
}

ComputeServiceImpl::~ComputeServiceImpl() = default;

grpc::ServerUnaryReactor* ComputeServiceImpl::GetModel(
    grpc::CallbackServerContext* context,
    const v1::GetModelRequest* /*request*/, v1::GetModelResponse* response) {
  const StepEngine& engine = *options_.engine;
  const EngramConfig& config = engine.block().config();
  response->set_version(engine.options().version);
  response->set_config_json(ConfigToJson(config));
  for (const uint32_t layer : config.layer_ids) {
    response->add_layer_ids(layer);
  }
  response->set_hc_mult(config.hc_mult);
  response->set_dim(config.dim);
  response->set_max_tokens_per_step(engine.options().max_tokens_per_step);
  response->set_max_steps_in_flight_per_stream(
      options_.limits.max_steps_in_flight);
  response->set_max_prefetched_bytes_per_stream(
      options_.limits.max_prefetched_bytes);
  response->set_max_chunk_bytes(options_.limits.max_chunk_bytes);
  response->set_max_apply_bytes(options_.max_apply_bytes);
  response->set_step_timeout_us(static_cast<uint64_t>(
      absl::ToInt64Microseconds(engine.options().step_timeout)));
  response->set_worker_name(engine.options().worker_name);
  response->set_ready(engine.ready());
  engine.metrics().CallEnded("GetModel", absl::StatusCode::kOk);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* ComputeServiceImpl::Apply(
    grpc::CallbackServerContext* context, const v1::ApplyRequest* request,
    v1::ApplyResponse* response) {
  return ApplyCall::Start(options_.engine, options_.max_apply_bytes, context,
                          request, response);
}

grpc::ServerBidiReactor<v1::ForwardRequest, v1::ForwardResponse>*
ComputeServiceImpl::Forward(grpc::CallbackServerContext* context) {
  const std::shared_ptr<ForwardCall> call = ForwardCall::Create(
      this, options_.engine, options_.limits, CallerId{context->peer()});
  absl::Status status = AddForward(call);
  if (status.ok()) {
    call->Pump();
  } else {
    call->FinishNow(std::move(status));
  }
  return call.get();
}

absl::Status ComputeServiceImpl::AddForward(
    const std::shared_ptr<ForwardCall>& call) {
  MutexLock lock(&mutex_);
  // Asked under the lock: a stream is either seen by Drain or refused here.
  if (options_.engine->draining()) return options_.engine->CheckTakesSteps();
  ENGRAM_RETURN_IF_ERROR(TakeShare(forward_share_, WorkerBound::kForwardStreams,
                                   call->caller(), 1,
                                   options_.engine->metrics()));
  forwards_.emplace(call.get(), call);
  options_.engine->metrics().forward_streams().Set(
      static_cast<double>(forwards_.size()));
  return absl::OkStatus();
}

void ComputeServiceImpl::ForwardEnded(const ForwardCall* call) {
  MutexLock lock(&mutex_);
  if (forwards_.erase(call) == 0) return;  // it was refused
  forward_share_.Give(call->caller(), 1);
  options_.engine->metrics().forward_streams().Set(
      static_cast<double>(forwards_.size()));
}

void ComputeServiceImpl::Drain() {
  options_.engine->Drain();
  std::vector<std::shared_ptr<ForwardCall>> calls;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, weak] : forwards_) {
      if (auto call = weak.lock()) calls.push_back(std::move(call));
    }
  }
  const absl::Status draining = options_.engine->CheckTakesSteps();
  for (const auto& call : calls) call->FinishWhenIdle(draining);
}

}  // namespace engram

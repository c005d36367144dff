#include "engram_client/compute_client.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram_client/compute/attempts.h"
#include "engram_client/compute/remote_step.h"
#include "engram_client/compute/step_messages.h"
#include "engram_client/compute/worker_set.h"

namespace engram {
namespace {

// One unary Apply on one worker.
absl::Status CallApply(v1::ComputeService::Stub& stub,
                       const v1::ApplyRequest& request, absl::Time deadline,
                       v1::ApplyResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  grpc::Status result;
  Notification done;
  stub.async()->Apply(&context, &request, response,
                      [&](const grpc::Status& status) {
                        result = status;
                        done.Notify();
                      });
  done.Wait();  // ends with the call's deadline
  const absl::Status status = FromGrpcStatus(result);
  if (absl::IsCancelled(status)) {
    // Not by this client: the worker went down with the call in flight.
    return absl::UnavailableError(status.message());
  }
  return status;
}

absl::Status TakeResponse(const StepShape& shape, const ModelInfo& model,
                          const v1::ApplyResponse& response,
                          absl::Span<const StepLayerIo> layers) {
  if (response.version() != model.version ||
      static_cast<size_t>(response.layers_size()) != layers.size()) {
    return absl::InternalError(
        absl::StrCat("an answer of table version ", response.version(),
                     " with ", response.layers_size(), " layers, for ",
                     layers.size(), " layers of version ", model.version));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    ENGRAM_RETURN_IF_ERROR(CopyResult(shape,
                                      response.layers(static_cast<int>(i)), 0,
                                      shape.tokens, layers[i]));
  }
  return absl::OkStatus();
}

// A message above the limit would fail somewhere in gRPC, and say less.
absl::Status CheckMessageSize(const v1::ApplyRequest& request) {
  const size_t bytes = request.ByteSizeLong();
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return MakeError(
      ErrorReason::kTooLarge,
      absl::StrCat("the step makes a message of ", bytes,
                   " bytes; the limit is ", kMaxMessageBytes,
                   ": use a Forward step, which is sent in chunks"),
      {{"what", "message"},
       {"value", absl::StrCat(bytes)},
       {"limit", absl::StrCat(kMaxMessageBytes)}});
}

class ComputeClientImpl final : public ComputeClient {
 public:
  ComputeClientImpl(std::unique_ptr<WorkerSet> workers, ModelInfo model)
      : workers_(std::move(workers)), model_(std::move(model)) {}

  const ModelInfo& model() const override { return model_; }

  absl::Status Apply(absl::Span<const StepSequence> sequences, StepDtype dtype,
                     StepReturn what, absl::Span<const StepLayerIo> layers,
                     absl::Time deadline) override {
    const StepShape shape = ShapeOf(model_, sequences, dtype, what);
    v1::ApplyRequest request;
    request.set_version(model_.version);
    FillSequences(sequences, request.mutable_sequences());
    request.set_dtype(ToProto(dtype));
    request.set_return_kind(ToProto(what));
    for (const StepLayerIo& io : layers) {
      ENGRAM_RETURN_IF_ERROR(CheckIo(shape, io));
      v1::LayerStreams& streams = *request.add_layers();
      streams.set_layer_id(ToInt(io.layer));
      streams.set_streams(io.streams.data(), io.streams.size());
    }
    ENGRAM_RETURN_IF_ERROR(CheckMessageSize(request));

    Attempts attempts(workers_.get(), deadline);
    while (true) {
      ENGRAM_ASSIGN_OR_RETURN(const auto lease, attempts.Next());
      v1::ApplyResponse response;
      absl::Status status =
          CallApply(lease->link().stub(), request, deadline, &response);
      if (status.ok()) {
        status = TakeResponse(shape, model_, response, layers);
      }
      if (status.ok()) return status;
      if (absl::IsDeadlineExceeded(status) && absl::Now() >= deadline) {
        attempts.HeardNothing(*lease);
      }
      if (!attempts.MayRetry(*lease, status)) {
        return attempts.GiveUp(*lease, status);
      }
    }
  }

  absl::StatusOr<std::unique_ptr<Step>> Begin(
      std::vector<StepSequence> sequences, StepDtype dtype, StepReturn what,
      std::vector<LayerId> layers, absl::Time deadline) override {
    auto step = std::make_unique<RemoteStep>(&model_, workers_.get(),
                                             std::move(sequences), dtype, what,
                                             std::move(layers), deadline);
    ENGRAM_RETURN_IF_ERROR(step->Begin());
    return step;
  }

 private:
  const std::unique_ptr<WorkerSet> workers_;
  const ModelInfo model_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeClient>> ComputeClient::Create(
    Options options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError("no address of a compute worker");
  }
  auto workers = std::make_unique<WorkerSet>(options.addresses);
  ENGRAM_ASSIGN_OR_RETURN(
      ModelInfo model,
      workers->WaitForModel(absl::Now() + options.connect_timeout));
  return std::make_unique<ComputeClientImpl>(std::move(workers),
                                             std::move(model));
}

}  // namespace engram

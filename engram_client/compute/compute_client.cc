#include "engram_client/compute_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram_client/compute/apply_step.h"
#include "engram_client/compute/attempts.h"
#include "engram_client/compute/remote_step.h"
#include "engram_client/compute/step_messages.h"
#include "engram_client/compute/step_monitor.h"
#include "engram_client/compute/worker_set.h"

namespace engram {
namespace {

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
  ComputeClientImpl(std::unique_ptr<StepMonitor> monitor,
                    std::unique_ptr<WorkerSet> workers, ModelInfo model)
      : monitor_(std::move(monitor)),
        workers_(std::move(workers)),
        model_(std::move(model)) {}

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

    ApplyStep step(&request, Attempts(workers_.get(), monitor_.get(),
                                      {.kind = StepWork::Kind::kApply,
                                       .tokens = shape.tokens * layers.size()},
                                      deadline));
    return step.Run([&](const v1::ApplyResponse& response) {
      return TakeResponse(shape, model_, response, layers);
    });
  }

  absl::StatusOr<std::unique_ptr<Step>> Begin(
      std::vector<StepSequence> sequences, StepDtype dtype, StepReturn what,
      std::vector<LayerId> layers, const StepOptions& options) override {
    auto step = std::make_unique<RemoteStep>(
        &model_, workers_.get(), monitor_.get(), std::move(sequences), dtype,
        what, std::move(layers), options);
    ENGRAM_RETURN_IF_ERROR(step->Begin());
    return step;
  }

  Stats stats() const override { return monitor_->stats(); }

 private:
  const std::unique_ptr<StepMonitor> monitor_;
  const std::unique_ptr<WorkerSet> workers_;
  const ModelInfo model_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeClient>> ComputeClient::Create(
    Options options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError("no address of a compute worker");
  }
  if (options.first_hedge_delay <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_hedge_delay is ",
                     absl::FormatDuration(options.first_hedge_delay),
                     "; it must be more than 0"));
  }
  auto monitor = std::make_unique<StepMonitor>(options.first_hedge_delay,
                                               std::move(options.metrics));
  auto workers =
      std::make_unique<WorkerSet>(options.addresses, &monitor->metrics());
  ENGRAM_ASSIGN_OR_RETURN(
      ModelInfo model,
      workers->WaitForModel(absl::Now() + options.connect_timeout));
  return std::make_unique<ComputeClientImpl>(
      std::move(monitor), std::move(workers), std::move(model));
}

}  // namespace engram

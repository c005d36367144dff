#include "engram_client/compute/remote_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// Chunks sent and not yet answered: enough to keep a worker busy, and a bound
// on what the client copies.
constexpr size_t kMaxUnansweredChunks = 16;

uint64_t MicrosecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return 0;  // the worker's own limit
  return static_cast<uint64_t>(
      std::max<int64_t>(1, absl::ToInt64Microseconds(deadline - absl::Now())));
}

}  // namespace

RemoteStep::RemoteStep(const ModelInfo* model, WorkerSet* workers,
                       std::vector<StepSequence> sequences, StepDtype dtype,
                       StepReturn what, std::vector<LayerId> layers,
                       absl::Time deadline)
    : model_(*model),
      shape_(ShapeOf(*model, sequences, dtype, what)),
      attempts_(workers, deadline) {
  begin_.set_version(model->version);
  FillSequences(sequences, begin_.mutable_sequences());
  begin_.set_dtype(ToProto(dtype));
  begin_.set_return_kind(ToProto(what));
  for (const LayerId layer : layers) begin_.add_layer_ids(ToInt(layer));
}

RemoteStep::~RemoteStep() { StopRunning(); }

absl::Status RemoteStep::Begin() {
  if (begin_.layer_ids().empty()) {
    return absl::InvalidArgumentError("the step names no layer");
  }
  return EnsureRunning();
}

absl::Status RemoteStep::EnsureRunning() {
  if (run_ != nullptr) return absl::OkStatus();
  auto run = std::make_unique<Run>();
  ENGRAM_ASSIGN_OR_RETURN(run->lease, attempts_.Next());
  run->replies = std::make_shared<StepReplies>();
  run->place = run->lease->link().AddStep(
      run->replies, shape_.tokens, run->lease->limits().max_steps_per_stream);
  v1::ForwardRequest request;
  request.set_step_id(run->place.step_id);
  *request.mutable_begin() = begin_;
  request.mutable_begin()->set_timeout_us(
      MicrosecondsUntil(attempts_.deadline()));
  run->place.stream->Send(std::move(request));
  run_ = std::move(run);
  return absl::OkStatus();
}

absl::Status RemoteStep::Layer(const StepLayerIo& io) {
  ENGRAM_RETURN_IF_ERROR(failed_);
  const auto& open = begin_.layer_ids();
  const auto layer = std::find(open.begin(), open.end(), ToInt(io.layer));
  if (layer == open.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(io.layer),
                     " is not of this step, or has its result already"));
  }
  ENGRAM_RETURN_IF_ERROR(CheckIo(shape_, io));
  while (true) {
    failed_ = EnsureRunning();
    if (!failed_.ok()) return failed_;
    const absl::Status status = RunLayer(io);
    if (status.ok()) {
      begin_.mutable_layer_ids()->erase(layer);
      return status;
    }
    const bool again = attempts_.MayRetry(*run_->lease, status);
    if (!again) failed_ = attempts_.GiveUp(*run_->lease, status);
    StopRunning();
    if (!again) return failed_;
  }
}

absl::Status RemoteStep::RunLayer(const StepLayerIo& io) {
  std::map<uint64_t, uint64_t> unanswered;
  uint64_t sent = 0;
  while (sent < shape_.tokens || !unanswered.empty()) {
    if (sent < shape_.tokens && unanswered.size() < kMaxUnansweredChunks) {
      const uint64_t count = SendChunk(io, sent);
      unanswered.emplace(sent, count);
      sent += count;
      continue;
    }
    ENGRAM_RETURN_IF_ERROR(TakeResult(io, unanswered));
  }
  return absl::OkStatus();
}

uint64_t RemoteStep::SendChunk(const StepLayerIo& io, uint64_t first_token) {
  const uint64_t count =
      std::min(TokensPerChunk(shape_, run_->lease->limits().max_chunk_bytes),
               shape_.tokens - first_token);
  const uint64_t token_bytes = shape_.token_stream_bytes();
  const auto bytes =
      io.streams.subspan(first_token * token_bytes, count * token_bytes);
  v1::ForwardRequest request;
  request.set_step_id(run_->place.step_id);
  v1::StepLayer& layer = *request.mutable_layer();
  layer.set_layer_id(ToInt(io.layer));
  layer.set_first_token(first_token);
  layer.set_streams(bytes.data(), bytes.size());
  run_->place.stream->Send(std::move(request));
  return count;
}

absl::Status RemoteStep::TakeResult(const StepLayerIo& io,
                                    std::map<uint64_t, uint64_t>& unanswered) {
  const StepReplies::Next next = run_->replies->WaitNext(attempts_.deadline());
  if (next.end.has_value()) {
    if (!next.end->ok()) return *next.end;
    return absl::InternalError(absl::StrCat("the step ended before layer ",
                                            ToInt(io.layer), " was answered"));
  }
  if (!next.result.has_value()) return TooLate();
  run_->answered = true;
  const v1::StepResult& result = *next.result;
  if (result.version() != model_.version) {
    return absl::InternalError(
        absl::StrCat("a result of table version ", result.version(),
                     " for a step of version ", model_.version));
  }
  const auto chunk = unanswered.find(result.first_token());
  if (chunk == unanswered.end() || chunk->second != result.token_count()) {
    return absl::InternalError(absl::StrCat(
        "a result for ", result.token_count(), " tokens from token ",
        result.first_token(), " on, which is no chunk that was sent"));
  }
  ENGRAM_RETURN_IF_ERROR(CopyResult(
      shape_, result.result(), result.first_token(), result.token_count(), io));
  unanswered.erase(chunk);
  return absl::OkStatus();
}

absl::Status RemoteStep::Finish() {
  ENGRAM_RETURN_IF_ERROR(failed_);
  if (!begin_.layer_ids().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "layer ", begin_.layer_ids(0), " of the step was not run"));
  }
  if (run_ == nullptr) return absl::OkStatus();
  const StepReplies::Next next = run_->replies->WaitNext(attempts_.deadline());
  absl::Status status;
  if (next.result.has_value()) {
    status = absl::InternalError("a result that nobody asked for");
  } else if (!next.end.has_value()) {
    status = TooLate();
  } else if (!attempts_.MayRetry(*run_->lease, *next.end)) {
    status = *next.end;
  }  // else every result is here, and the worker went away after the last
  StopRunning();
  return status;
}

absl::Status RemoteStep::TooLate() {
  if (!run_->answered) attempts_.HeardNothing(*run_->lease);
  return absl::DeadlineExceededError("no answer by the step's deadline");
}

void RemoteStep::StopRunning() {
  if (run_ == nullptr) return;
  run_->place.stream->RemoveStep(run_->place.step_id);
  run_ = nullptr;
}

}  // namespace engram

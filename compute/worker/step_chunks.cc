// The streams of a step: taken as they come, computed once their rows are
// there.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compute/worker/metrics.h"
#include "compute/worker/step.h"
#include "compute/worker/step_engine.h"
#include "compute/worker/step_layer.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {

// ---- the streams ----

void Step::AddChunk(LayerId layer_id, StepChunk chunk) {
  absl::Status status = TakeChunk(layer_id, std::move(chunk));
  if (!status.ok()) Fail(std::move(status));
}

Step::Layer* Step::FindLayer(LayerId layer_id) {
  for (const std::unique_ptr<Layer>& layer : layers_) {
    if (layer->id == layer_id) return layer.get();
  }
  return nullptr;
}

absl::Status Step::TakeChunk(LayerId layer_id, StepChunk chunk) {
  Layer* const layer = FindLayer(layer_id);
  if (layer == nullptr) {
    return MakeError(ErrorReason::kUnknownLayer,
                     absl::StrCat("layer ", ToInt(layer_id),
                                  " is not among the layers of the step"),
                     {{"layer", absl::StrCat(ToInt(layer_id))}});
  }
  const uint64_t bytes = chunk.streams.size();
  if (bytes == 0 || bytes % token_bytes_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer_id), ": ", bytes,
                     " bytes of streams are no whole number of tokens of ",
                     token_bytes_, " bytes"));
  }
  const uint64_t count = bytes / token_bytes_;
  if (chunk.first_token > request_.tokens() ||
      count > request_.tokens() - chunk.first_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer_id), ": streams of ", count,
                     " tokens from token ", chunk.first_token,
                     " on, in a step of ", request_.tokens(), " tokens"));
  }
  StreamReservation reserved;
  if (chunk.owner != nullptr) {
    ENGRAM_ASSIGN_OR_RETURN(reserved, engine_.ReserveStreams(caller_, bytes));
  }
  absl::Status status;
  bool compute = false;
  {
    MutexLock lock(&mutex_);
    // Streams that come after the step's end are nobody's error.
    if (!ended_) {
      status = MarkReceived(*layer, chunk.first_token, count);
    }
    if (!ended_ && status.ok()) {
      layer->pending.push_back({.chunk = std::move(chunk),
                                .token_count = count,
                                .arrived = engine_.clock().Now(),
                                .reserved = std::move(reserved)});
      compute = TakeComputeTurn(*layer);
    }
  }
  if (compute) ScheduleCompute(*layer);
  return status;
}

absl::Status Step::MarkReceived(Layer& layer, uint64_t first, uint64_t count) {
  const auto begin = layer.received.begin() + static_cast<ptrdiff_t>(first);
  const auto end = begin + static_cast<ptrdiff_t>(count);
  const auto twice = std::find(begin, end, true);
  if (twice != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer.id), ": streams of token ",
                     twice - layer.received.begin(), " came twice"));
  }
  std::fill(begin, end, true);
  layer.received_count += count;
  return absl::OkStatus();
}

void Step::EndOfChunks() {
  const std::string missing = MissingStreams();
  if (missing.empty()) return;
  Fail(absl::CancelledError(absl::StrCat(
      "the caller ended before the step was complete: ", missing)));
}

std::string Step::MissingStreams() {
  MutexLock lock(&mutex_);
  for (const std::unique_ptr<Layer>& layer : layers_) {
    if (layer->received_count == request_.tokens()) continue;
    return absl::StrCat("layer ", ToInt(layer->id), " has streams of ",
                        layer->received_count, " of ", request_.tokens(),
                        " tokens");
  }
  return "";
}

// ---- computing ----

bool Step::TakeComputeTurn(Layer& layer) {
  if (ended_ || layer.computing || !layer.rows_ready || layer.pending.empty()) {
    return false;
  }
  layer.computing = true;
  layer.queued = engine_.clock().Now();
  return true;
}

void Step::ScheduleCompute(Layer& layer) {
  absl::Status queued = engine_.RunOnComputePool(
      caller_,
      [self = shared_from_this(), &layer] { self->ComputeRun(layer); });
  if (!queued.ok()) Fail(std::move(queued));
}

void Step::ComputeRun(Layer& layer) {
  if (!Enter()) return;
  PendingChunk* pending = nullptr;
  absl::Duration queue_time;
  {
    MutexLock lock(&mutex_);
    pending = &layer.pending.front();  // stays put: only AfterRun removes it
    queue_time = engine_.clock().Now() - layer.queued;
    if (pending->tokens_done == 0) {
      engine_.metrics().StageTook(
          StepStage::kFetchWait, std::max(layer.rows_arrived - pending->arrived,
                                          absl::ZeroDuration()));
    }
  }
  engine_.metrics().StageTook(StepStage::kQueue, queue_time);
  if (StillWanted()) {
    absl::Status status = RunBlock(layer, *pending);
    if (status.ok()) {
      FinishRun(layer, *pending);
    } else {
      Fail(std::move(status));
    }
  }
  Leave();
}

absl::Status Step::RunBlock(Layer& layer, PendingChunk& pending) {
  const EngramBlock& block = engine_.block();
  const uint64_t first = pending.chunk.first_token + pending.tokens_done;
  const uint64_t count = std::min(engine_.max_tokens_per_run(),
                                  pending.token_count - pending.tokens_done);
  const uint64_t token_row_bytes =
      uint64_t{block.hasher().columns()} * block.row_format().row_bytes();
  const uint64_t rows_begin = request_.LiveBefore(first) * token_row_bytes;
  const uint64_t rows_end =
      request_.LiveBefore(first + count) * token_row_bytes;

  const absl::Time start = engine_.clock().Now();
  const absl::Status status = block.Forward(
      layer.index, request_.dtype(),
      layer.rows.bytes().subspan(rows_begin, rows_end - rows_begin),
      pending.chunk.streams.subspan(pending.tokens_done * token_bytes_,
                                    count * token_bytes_),
      request_.mask().empty() ? request_.mask()
                              : request_.mask().subspan(first, count),
      OutputsOf(pending, count));
  // Of the block's own bounds: another worker may have room.
  if (absl::IsResourceExhausted(status)) {
    return OverloadedError(status.message());
  }
  if (absl::IsUnavailable(status)) return engine_.BlockFailedError(status);
  ENGRAM_RETURN_IF_ERROR(status);
  engine_.metrics().StageTook(StepStage::kBlock, engine_.clock().Now() - start);
  pending.tokens_done += count;
  return absl::OkStatus();
}

BlockOutputs Step::OutputsOf(PendingChunk& pending, uint64_t count) const {
  const EngramConfig& config = engine_.block().config();
  const uint64_t done = pending.tokens_done;
  // The strings of the reply are written in place: no copy on the way out.
  const auto field = [&](std::string& bytes, uint64_t token_bytes) {
    if (bytes.empty()) bytes.resize(pending.token_count * token_bytes);
    return absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()),
                          bytes.size())
        .subspan(done * token_bytes, count * token_bytes);
  };
  BlockOutputs outputs;
  if (request_.output() == StepOutput::kStreams) {
    outputs.streams = field(*pending.result.mutable_streams(), token_bytes_);
    return outputs;
  }
  const auto gate =
      field(*pending.result.mutable_gate(), config.hc_mult * sizeof(float));
  const auto value =
      field(*pending.result.mutable_value(), config.dim * sizeof(uint16_t));
  outputs.gate = {reinterpret_cast<float*>(gate.data()),
                  gate.size() / sizeof(float)};
  outputs.value = {reinterpret_cast<uint16_t*>(value.data()),
                   value.size() / sizeof(uint16_t)};
  return outputs;
}

void Step::FinishRun(Layer& layer, PendingChunk& pending) {
  const bool chunk_done = pending.tokens_done == pending.token_count;
  if (chunk_done) {
    StreamReservation reserved = std::move(pending.reserved);
    pending.result.set_layer_id(ToInt(layer.id));
    std::shared_ptr<StepObserver> observer;
    {
      MutexLock lock(&mutex_);
      if (!ended_) observer = observer_;
    }
    if (observer != nullptr) {
      observer->OnResult({.first_token = pending.chunk.first_token,
                          .token_count = pending.token_count,
                          .input_bytes = pending.chunk.streams.size(),
                          .result = std::move(pending.result),
                          .reserved = std::move(reserved)});
    }
  }
  bool again = false;
  {
    MutexLock lock(&mutex_);
    layer.computing = false;
    if (chunk_done) {
      tokens_left_ -= pending.token_count;
      layer.pending.pop_front();
      if (tokens_left_ == 0) ended_ = true;  // OK, unless it has failed
    }
    again = TakeComputeTurn(layer);
  }
  // Back to the end of the caller's queue after every run: a long prefill does
  // not keep its other steps out.
  if (again) ScheduleCompute(layer);
}

}  // namespace engram

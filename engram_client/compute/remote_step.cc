#include "engram_client/compute/remote_step.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "engram_client/rpc/timer_queue.h"

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
                       StepMonitor* monitor,
                       std::vector<StepSequence> sequences, StepDtype dtype,
                       StepReturn what, std::vector<LayerId> layers,
                       const StepOptions& options)
    : model_(*model),
      shape_(ShapeOf(*model, sequences, dtype, what)),
      rows_deadlines_(options.rows_deadlines),
      attempts_(workers, monitor,
                {.kind = StepWork::Kind::kLayer, .tokens = shape_.tokens},
                options.deadline) {
  begin_.set_version(model->version);
  FillSequences(sequences, begin_.mutable_sequences());
  begin_.set_dtype(ToProto(dtype));
  begin_.set_return_kind(ToProto(what));
  for (const LayerId layer : layers) begin_.add_layer_ids(ToInt(layer));
}

RemoteStep::~RemoteStep() { StopAll(); }

bool RemoteStep::IsOpen(LayerId layer) const {
  const auto& open = begin_.layer_ids();
  return std::find(open.begin(), open.end(), ToInt(layer)) != open.end();
}

absl::Status RemoteStep::Begin() {
  if (begin_.layer_ids().empty()) {
    return absl::InvalidArgumentError("the step names no layer");
  }
  for (const auto& [layer, deadline] : rows_deadlines_) {
    if (IsOpen(layer)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rows_deadlines has layer ", ToInt(layer),
                     ", which is not among the layers of the step"));
  }
  return EnsureRunning();
}

// ---- runs ----

absl::Status RemoteStep::EnsureRunning() {
  if (!runs_.empty()) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(auto lease, attempts_.Next());
  BeginOn(std::move(lease));
  return absl::OkStatus();
}

void RemoteStep::BeginOn(std::unique_ptr<WorkerSet::Lease> lease) {
  if (!runs_.empty()) ran_until_ = absl::Now();
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run.number = ++last_run_;
  run.lease = std::move(lease);
  run.place = run.lease->link().AddStep(
      {.step = replies_, .run = run.number}, shape_.tokens,
      run.lease->limits().max_steps_per_stream);
  run.StartLayer();
  v1::ForwardRequest request;
  request.set_step_id(run.place.step_id);
  *request.mutable_begin() = BeginNow();
  run.place.stream->Send(std::move(request));
}

v1::StepBegin RemoteStep::BeginNow() const {
  v1::StepBegin begin = begin_;
  begin.set_timeout_us(MicrosecondsUntil(attempts_.deadline()));
  for (const auto& [layer, deadline] : rows_deadlines_) {
    if (deadline == absl::InfiniteFuture() || !IsOpen(layer)) continue;
    // A worker that was there then had the rows in time, and has had no more.
    if (deadline <= ran_until_) continue;
    v1::LayerTimeout& timeout = *begin.add_layer_timeouts();
    timeout.set_layer_id(ToInt(layer));
    timeout.set_timeout_us(MicrosecondsUntil(deadline));
  }
  return begin;
}

void RemoteStep::Run::StartLayer() {
  layer_began = SteadyNow();
  sent = 0;
  unanswered.clear();
}

RemoteStep::Run* RemoteStep::Find(uint64_t number) {
  for (const auto& run : runs_) {
    if (run->number == number) return run.get();
  }
  return nullptr;
}

void RemoteStep::Stop(const Run& run) {
  ran_until_ = absl::Now();
  run.place.stream->RemoveStep(run.place.step_id);
  runs_.erase(std::find_if(runs_.begin(), runs_.end(),
                           [&](const auto& r) { return r.get() == &run; }));
}

void RemoteStep::StopAll() {
  while (!runs_.empty()) Stop(*runs_.back());
}

absl::Status RemoteStep::GiveUp(Run& run, const absl::Status& status) {
  absl::Status error = attempts_.Failed(*run.lease, status,
                                        /*other_goes_on=*/runs_.size() > 1);
  Stop(run);
  return error;
}

// ---- layers ----

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
  failed_ = RunLayer(io);
  if (failed_.ok()) {
    begin_.mutable_layer_ids()->erase(layer);
  } else {
    StopAll();
  }
  return failed_;
}

absl::Status RemoteStep::RunLayer(const StepLayerIo& io) {
  for (const auto& run : runs_) run->StartLayer();
  attempts_.AwaitOne();
  while (true) {
    ENGRAM_RETURN_IF_ERROR(EnsureRunning());
    for (const auto& run : runs_) SendChunks(io, *run);
    const std::optional<StepReplies::Reply> reply = replies_->WaitNext(
        std::min(attempts_.hedge_at(), attempts_.deadline()));
    if (!reply.has_value()) {
      ENGRAM_RETURN_IF_ERROR(OnSilence());
      continue;
    }
    Run* const run = Find(reply->run);
    if (run == nullptr) continue;  // was stopped
    const absl::Status status = TakeReply(io, *run, *reply);
    if (!status.ok()) {
      ENGRAM_RETURN_IF_ERROR(GiveUp(*run, status));
    } else if (run->sent == shape_.tokens && run->unanswered.empty()) {
      GoOnWith(*run);
      return absl::OkStatus();
    }
  }
}

void RemoteStep::SendChunks(const StepLayerIo& io, Run& run) {
  while (run.sent < shape_.tokens &&
         run.unanswered.size() < kMaxUnansweredChunks) {
    const uint64_t count = SendChunk(io, run, run.sent);
    run.unanswered.emplace(run.sent, count);
    run.sent += count;
  }
}

uint64_t RemoteStep::SendChunk(const StepLayerIo& io, const Run& run,
                               uint64_t first_token) {
  const uint64_t count =
      std::min(TokensPerChunk(shape_, run.lease->limits().max_chunk_bytes),
               shape_.tokens - first_token);
  const uint64_t token_bytes = shape_.token_stream_bytes();
  const auto bytes =
      io.streams.subspan(first_token * token_bytes, count * token_bytes);
  v1::ForwardRequest request;
  request.set_step_id(run.place.step_id);
  v1::StepLayer& layer = *request.mutable_layer();
  layer.set_layer_id(ToInt(io.layer));
  layer.set_first_token(first_token);
  layer.set_streams(bytes.data(), bytes.size());
  run.place.stream->Send(std::move(request));
  return count;
}

absl::Status RemoteStep::OnSilence() {
  const Run& first = *runs_.front();
  const absl::Time now = absl::Now();
  if (now >= attempts_.deadline()) {
    if (!first.answered) attempts_.HeardNothing(*first.lease);
    return attempts_.GiveUp(
        *first.lease,
        absl::DeadlineExceededError("no answer by the step's deadline"));
  }
  if (now < attempts_.hedge_at()) return absl::OkStatus();
  if (auto lease = attempts_.Hedge(*first.lease)) BeginOn(std::move(lease));
  return absl::OkStatus();
}

absl::Status RemoteStep::TakeReply(const StepLayerIo& io, Run& run,
                                   const StepReplies::Reply& reply) {
  if (reply.result.has_value()) return TakeResult(io, run, *reply.result);
  if (!reply.end->ok()) return *reply.end;
  return absl::InternalError(absl::StrCat("the step ended before layer ",
                                          ToInt(io.layer), " was answered"));
}

absl::Status RemoteStep::TakeResult(const StepLayerIo& io, Run& run,
                                    const v1::StepResult& result) {
  run.answered = true;
  if (result.version() != model_.version) {
    return absl::InternalError(
        absl::StrCat("a result of table version ", result.version(),
                     " for a step of version ", model_.version));
  }
  const auto chunk = run.unanswered.find(result.first_token());
  if (chunk == run.unanswered.end() || chunk->second != result.token_count()) {
    return absl::InternalError(absl::StrCat(
        "a result for ", result.token_count(), " tokens from token ",
        result.first_token(), " on, which is no chunk that was sent"));
  }
  ENGRAM_RETURN_IF_ERROR(CopyResult(
      shape_, result.result(), result.first_token(), result.token_count(), io));
  run.unanswered.erase(chunk);
  return absl::OkStatus();
}

void RemoteStep::GoOnWith(Run& run) {
  attempts_.Answered(*run.lease, SteadyNow() - run.layer_began);
  if (runs_.size() == 1) return;
  const bool hedge_won = runs_.back().get() == &run;
  const Run& other = hedge_won ? *runs_.front() : *runs_.back();
  if (hedge_won) attempts_.HedgeWon(*other.lease);
  Stop(other);
}

// ---- the end ----

absl::Status RemoteStep::Finish() {
  ENGRAM_RETURN_IF_ERROR(failed_);
  if (!begin_.layer_ids().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "layer ", begin_.layer_ids(0), " of the step was not run"));
  }
  if (runs_.empty()) return absl::OkStatus();
  const absl::Status status = AwaitEnd(*runs_.front());
  StopAll();
  return status;
}

// Every result is here: a worker that goes away or falls silent after the last
// changes nothing.
absl::Status RemoteStep::AwaitEnd(const Run& run) {
  attempts_.AwaitOne();
  const absl::Time until = std::min(attempts_.hedge_at(), attempts_.deadline());
  while (const auto reply = replies_->WaitNext(until)) {
    if (reply->run != run.number) continue;
    if (reply->result.has_value()) {
      return absl::InternalError("a result that nobody asked for");
    }
    return attempts_.MayRetry(*run.lease, *reply->end) ? absl::OkStatus()
                                                       : *reply->end;
  }
  return absl::OkStatus();
}

}  // namespace engram

#include "compute/worker/forward_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

constexpr size_t kEndedIdsKept = 1024;

absl::Span<const std::byte> AsBytes(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

absl::Duration FromMicros(uint64_t us) {
  return absl::Microseconds(std::min(us, uint64_t{1} << 53));
}

StepSpec SpecOf(v1::StepBegin begin, const EngramConfig& config,
                const CallerId& caller) {
  StepSpec spec;
  spec.caller = caller;
  spec.version = begin.version();
  spec.sequences = std::move(*begin.mutable_sequences());
  spec.dtype = begin.dtype();
  spec.return_kind = begin.return_kind();
  for (const uint32_t layer : begin.layer_ids()) {
    spec.layers.push_back(LayerId{layer});
  }
  if (spec.layers.empty()) {
    for (const uint32_t layer : config.layer_ids) {
      spec.layers.push_back(LayerId{layer});
    }
  }
  for (const v1::LayerTimeout& timeout : begin.layer_timeouts()) {
    spec.layer_timeouts.push_back(
        {.layer = LayerId{timeout.layer_id()},
         .timeout = FromMicros(timeout.timeout_us())});
  }
  return spec;
}

}  // namespace

ForwardLimits ForwardLimits::For(const StepEngine& engine) {
  const EngramBlock& block = engine.block();
  const uint64_t packed_bytes_per_token =
      uint64_t{block.hasher().columns()} * block.row_format().row_bytes();
  ForwardLimits limits;
  limits.max_prefetched_bytes =
      std::max(limits.max_prefetched_bytes,
               engine.options().max_tokens_per_step *
                   block.layout().layers().size() * packed_bytes_per_token);
  limits.max_chunk_bytes =
      std::max(limits.max_chunk_bytes,
               TokenStreamBytes(block.config(), StreamDtype::kF32));
  return limits;
}

// Carries a step's results to its session, which it keeps alive.
class ForwardSession::Observer final : public StepObserver {
 public:
  Observer(std::shared_ptr<ForwardSession> session, uint64_t step_id)
      : session_(std::move(session)), step_id_(step_id) {}
  void OnResult(StepChunkResult result) override {
    session_->OnResult(step_id_, std::move(result));
  }
  void OnEnd(const absl::Status& status) override {
    session_->OnEnd(step_id_, status);
  }

 private:
  const std::shared_ptr<ForwardSession> session_;
  const uint64_t step_id_;
};

std::shared_ptr<ForwardSession> ForwardSession::Create(
    StepEngine* engine, const ForwardLimits& limits, CallerId caller,
    std::function<void()> wake) {
  return std::shared_ptr<ForwardSession>(
      new ForwardSession(engine, limits, std::move(caller), std::move(wake)));
}

// ---- requests ----

absl::Status ForwardSession::Handle(v1::ForwardRequest request) {
  const uint64_t id = request.step_id();
  switch (request.kind_case()) {
    case v1::ForwardRequest::kBegin:
      return Begin(id, std::move(*request.mutable_begin()));
    case v1::ForwardRequest::kLayer:
      TakeStreams(id, std::move(*request.mutable_layer()));
      return absl::OkStatus();
    case v1::ForwardRequest::kCancel:
      CancelStep(id);
      return absl::OkStatus();
    case v1::ForwardRequest::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a message of step ", id, " has neither begin, layer nor cancel"));
}

absl::Status ForwardSession::Begin(uint64_t step_id, v1::StepBegin begin) {
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    if (cancelled_) return absl::OkStatus();
    if (steps_.count(step_id) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("step id ", step_id, " is in use by a step in flight"));
    }
    if (steps_.size() >= limits_.max_steps_in_flight) {
      refused = OverloadedError(absl::StrCat("the stream has ", steps_.size(),
                                             " steps in flight, its limit"));
      RememberEnded(step_id);
      PushEnd(step_id, refused);
    } else {
      steps_[step_id] = {};
    }
  }
  if (!refused.ok()) {
    wake_();
    return absl::OkStatus();
  }
  const absl::Time deadline =
      begin.timeout_us() == 0
          ? absl::InfiniteFuture()
          : engine_->clock().Now() + FromMicros(begin.timeout_us());
  auto step = engine_->Begin(
      SpecOf(std::move(begin), engine_->block().config(), caller_), deadline,
      std::make_shared<Observer>(shared_from_this(), step_id));
  if (step.ok()) {
    StartStep(step_id, *std::move(step));
  } else {
    OnEnd(step_id, step.status());
  }
  return absl::OkStatus();
}

void ForwardSession::StartStep(uint64_t step_id, std::shared_ptr<Step> step) {
  const uint64_t bytes = step->prefetched_bytes();
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    const auto found = steps_.find(step_id);
    if (found == steps_.end()) return;  // ended before it was started
    StepEntry& entry = found->second;
    entry.step = step;
    if (cancelled_) {
      refused = absl::CancelledError("the stream was cancelled");
    } else if (bytes > limits_.max_prefetched_bytes - prefetched_bytes_) {
      refused = OverloadedError(absl::StrCat(
          "rows of this step: ", bytes, " bytes; the stream holds ",
          prefetched_bytes_, " of at most ", limits_.max_prefetched_bytes));
    } else {
      entry.prefetched_bytes = bytes;
      prefetched_bytes_ += bytes;
    }
  }
  if (refused.ok()) {
    step->Start();
  } else {
    step->Fail(std::move(refused));
  }
}

void ForwardSession::TakeStreams(uint64_t step_id, v1::StepLayer layer) {
  const uint64_t bytes = layer.streams().size();
  std::shared_ptr<Step> step;
  {
    MutexLock lock(&mutex_);
    const auto entry = steps_.find(step_id);
    if (entry != steps_.end()) {
      step = entry->second.step;
      entry->second.held_bytes += bytes;
      held_bytes_ += bytes;
    } else if (!cancelled_ && ended_.count(step_id) == 0) {
      RememberEnded(step_id);
      PushEnd(step_id, absl::NotFoundError(
                           absl::StrCat("step ", step_id, " was never begun")));
    }
  }
  if (step == nullptr) return wake_();
  if (bytes > limits_.max_chunk_bytes) {
    step->Fail(
        MakeError(ErrorReason::kTooLarge,
                  absl::StrCat("layer ", layer.layer_id(), ": a chunk of ",
                               bytes, " bytes of streams; the limit is ",
                               limits_.max_chunk_bytes),
                  {{"what", "chunk"},
                   {"value", absl::StrCat(bytes)},
                   {"limit", absl::StrCat(limits_.max_chunk_bytes)}}));
    return;
  }
  auto streams =
      std::make_shared<std::string>(std::move(*layer.mutable_streams()));
  const absl::Span<const std::byte> view = AsBytes(*streams);
  step->AddChunk(LayerId{layer.layer_id()}, {.first_token = layer.first_token(),
                                             .streams = view,
                                             .owner = std::move(streams)});
}

void ForwardSession::CancelStep(uint64_t step_id) {
  if (const std::shared_ptr<Step> step = Find(step_id)) step->Cancel();
}

void ForwardSession::EndOfRequests() {
  for (const auto& step : Steps()) step->EndOfChunks();
  wake_();
}

void ForwardSession::Cancel() {
  std::deque<Reply> dropped;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    dropped.swap(replies_);
  }
  for (const auto& step : Steps()) step->Cancel();
}

std::shared_ptr<Step> ForwardSession::Find(uint64_t step_id) const {
  MutexLock lock(&mutex_);
  const auto entry = steps_.find(step_id);
  return entry == steps_.end() ? nullptr : entry->second.step;
}

std::vector<std::shared_ptr<Step>> ForwardSession::Steps() const {
  std::vector<std::shared_ptr<Step>> steps;
  MutexLock lock(&mutex_);
  for (const auto& [id, entry] : steps_) {
    if (entry.step != nullptr) steps.push_back(entry.step);
  }
  return steps;
}

// ---- replies ----

void ForwardSession::OnResult(uint64_t step_id, StepChunkResult result) {
  {
    MutexLock lock(&mutex_);
    const auto entry = steps_.find(step_id);
    if (entry != steps_.end()) {
      entry->second.held_bytes -= result.input_bytes;
      held_bytes_ -= result.input_bytes;
    }
    if (!cancelled_) {
      Reply reply;
      reply.bytes = result.result.streams().size() +
                    result.result.gate().size() + result.result.value().size();
      reply.reserved = std::move(result.reserved);
      reply.message.set_step_id(step_id);
      v1::StepResult& message = *reply.message.mutable_result();
      message.set_first_token(result.first_token);
      message.set_token_count(result.token_count);
      message.set_version(engine_->options().version);
      *message.mutable_result() = std::move(result.result);
      held_bytes_ += reply.bytes;
      replies_.push_back(std::move(reply));
    }
  }
  wake_();
}

void ForwardSession::OnEnd(uint64_t step_id, const absl::Status& status) {
  std::shared_ptr<Step> step;
  {
    MutexLock lock(&mutex_);
    const auto entry = steps_.find(step_id);
    held_bytes_ -= entry->second.held_bytes;
    prefetched_bytes_ -= entry->second.prefetched_bytes;
    step = std::move(entry->second.step);
    steps_.erase(entry);
    RememberEnded(step_id);
    if (!cancelled_) PushEnd(step_id, status);
  }
  wake_();
}

void ForwardSession::PushEnd(uint64_t step_id, const absl::Status& status) {
  Reply reply;
  reply.message.set_step_id(step_id);
  v1::StepEnd& end = *reply.message.mutable_end();
  *end.mutable_status() = ToRpcStatusProto(status);
  end.set_version(engine_->options().version);
  replies_.push_back(std::move(reply));
}

void ForwardSession::RememberEnded(uint64_t step_id) {
  ended_.insert(step_id);
  ended_order_.push_back(step_id);
  if (ended_order_.size() > kEndedIdsKept) {
    ended_.erase(ended_.find(ended_order_.front()));
    ended_order_.pop_front();
  }
}

bool ForwardSession::TakeReply(v1::ForwardResponse* reply) {
  MutexLock lock(&mutex_);
  if (replies_.empty()) return false;
  *reply = std::move(replies_.front().message);
  sending_bytes_ = replies_.front().bytes;
  sending_reserved_ = std::move(replies_.front().reserved);
  replies_.pop_front();
  return true;
}

void ForwardSession::ReplySent() {
  StreamReservation sent;  // goes after the lock
  MutexLock lock(&mutex_);
  sent = std::move(sending_reserved_);
  held_bytes_ -= sending_bytes_;
  sending_bytes_ = 0;
}

bool ForwardSession::wants_pause() const {
  MutexLock lock(&mutex_);
  return held_bytes_ > limits_.max_held_bytes ||
         replies_.size() > limits_.max_queued_replies;
}

bool ForwardSession::idle() const {
  MutexLock lock(&mutex_);
  return steps_.empty() && replies_.empty();
}

}  // namespace engram

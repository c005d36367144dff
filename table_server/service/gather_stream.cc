#include "table_server/service/gather_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/service/messages.h"

namespace engram {
namespace {

absl::Time DeadlineOf(uint64_t timeout_us, absl::Time now,
                      absl::Time stream_deadline) {
  if (timeout_us == 0) return stream_deadline;
  constexpr uint64_t kMaxTimeoutUs = uint64_t{1} << 50;  // 35 years
  return std::min(stream_deadline, now + absl::Microseconds(std::min(
                                             timeout_us, kMaxTimeoutUs)));
}

}  // namespace

void GatherStream::Await(const CallSource& source) {
  std::shared_ptr<GatherStream> stream(new GatherStream(source));
  stream->self_ = stream;
  source.rpc->RequestGatherStream(&stream->context_, &stream->stream_,
                                  source.queue, source.queue,
                                  stream->arrived_.tag());
}

GatherStream::GatherStream(const CallSource& source)
    : source_(source), service_(*source.service) {
  context_.AsyncNotifyWhenDone(call_ended_.tag());
}

void GatherStream::OnArrived(bool ok) {
  if (!ok) {  // the server shuts down; no call has begun
    const std::shared_ptr<GatherStream> self = std::move(self_);
    return;
  }
  Await(source_);
  Begin();
  EventEnded();
}

void GatherStream::Begin() {
  if (!service_.streams.Add(shared_from_this())) {
    MutexLock lock(&mutex_);
    Abandon(WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service_.streams.limit(),
                               " streams is reached")),
        service_.limits.retry_after));
  } else if (!service_.accepting.load()) {
    // After Add: a drain that began meanwhile stops what it finds there.
    return Stop();
  }
  Advance();
}

void GatherStream::Stop() {
  {
    MutexLock lock(&mutex_);
    if (abandoned_ || no_more_reads_) return;
    no_more_reads_ = true;
    final_status_ = service_.DrainingError();
  }
  Advance();
}

void GatherStream::OnRead(bool ok) {
  v1::GatherStreamRequest request;
  absl::Status parsed;
  {
    MutexLock lock(&mutex_);
    handling_ = true;
  }
  if (ok) parsed = ParseMessage(incoming_, request);
  incoming_.Clear();
  if (ok && parsed.ok()) Handle(std::move(request));
  {
    MutexLock lock(&mutex_);
    // Not before: messages are handled in their order.
    reading_ = handling_ = false;
    if (!ok) no_more_reads_ = true;
    if (!parsed.ok()) Abandon(parsed);
  }
  Advance();
  EventEnded();
}

void GatherStream::OnWritten(bool ok) {
  writing_ = {};
  {
    MutexLock lock(&mutex_);
    writing_now_ = false;
    if (!ok) Abandon(absl::CancelledError("the stream broke"));
  }
  Advance();
  EventEnded();
}

void GatherStream::OnCallEnded(bool) {
  if (context_.IsCancelled()) {
    {
      MutexLock lock(&mutex_);
      Abandon(absl::CancelledError("the caller cancelled the stream"));
    }
    Advance();
  }
  EventEnded();
}

void GatherStream::OnFinished(bool) { EventEnded(); }

void GatherStream::EventEnded() {
  {
    MutexLock lock(&mutex_);
    if (--busy_ > 0 || !finished_) return;
  }
  service_.streams.Remove(this);
  const std::shared_ptr<GatherStream> self = std::move(self_);
}

void GatherStream::Handle(v1::GatherStreamRequest request) {
  switch (request.kind_case()) {
    case v1::GatherStreamRequest::kGather:
      return HandleGather(std::move(request));
    case v1::GatherStreamRequest::kCancel:
      return HandleCancel(request.call_id());
    case v1::GatherStreamRequest::KIND_NOT_SET:
      break;
  }
  MutexLock lock(&mutex_);
  Abandon(absl::InvalidArgumentError(
      absl::StrCat("message of call ", request.call_id(),
                   " is neither a gather nor a cancel")));
}

void GatherStream::HandleGather(v1::GatherStreamRequest request) {
  const uint64_t call_id = request.call_id();
  absl::StatusOr<CallPtr> call = Admit(request);
  MutexLock lock(&mutex_);
  if (abandoned_) return;
  if (calls_.contains(call_id)) {
    return Abandon(absl::InvalidArgumentError(
        absl::StrCat("call id ", call_id, " is in use on this stream")));
  }
  if (!call.ok()) {
    service_.metrics.CallEnded(TableMethod::kGatherStream,
                               call.status().code());
    return Say(StreamError(call_id, call.status()));
  }
  calls_.emplace(call_id, *call);
  GiveTurn(*std::move(call));
}

absl::StatusOr<GatherStream::CallPtr> GatherStream::Admit(
    v1::GatherStreamRequest& request) {
  const uint64_t limit = service_.limits.max_gathers_in_flight_per_stream;
  {
    MutexLock lock(&mutex_);
    // Messages that were on their way when the drain began.
    if (no_more_reads_) return service_.DrainingError();
    if (calls_.size() + left_waiting_ >= limit) {
      return WithRetryAfter(
          MakeError(
              ErrorReason::kOverloaded,
              absl::StrCat(
                  calls_.size(), " gathers are in flight on this stream, ",
                  left_waiting_,
                  " that have ended wait for rows, the limit is ", limit)),
          service_.limits.retry_after);
    }
  }
  const uint64_t reply_bytes =
      RowCountOf(request.gather()) * service_.gatherer.row_bytes();
  const uint64_t held_bytes =
      std::min<uint64_t>(reply_bytes, (service_.limits.max_queued_pieces + 1) *
                                          service_.buffers.max_rows_bytes());
  const absl::Time deadline =
      DeadlineOf(request.timeout_us(), service_.clock.Now(),
                 absl::FromChrono(context_.deadline()));
  ENGRAM_ASSIGN_OR_RETURN(
      Admission::Ticket ticket,
      service_.Admit(request.gather(), reply_bytes, held_bytes, deadline));
  return std::make_shared<Call>(
      Call{request.call_id(),
           std::make_unique<GatherTask>(service_, TableMethod::kGatherStream,
                                        std::move(*request.mutable_gather()),
                                        std::move(ticket), deadline)});
}

void GatherStream::HandleCancel(uint64_t call_id) {
  CallPtr call;
  {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(call_id);
    // Its last message may be on its way: nothing is left to cancel.
    if (found == calls_.end()) return;
    call = found->second;
    EndCall(call_id);
    call->task->Cancel();
    std::erase(small_turns_, call);
    std::erase(large_turns_, call);
    Say(StreamError(call_id,
                    absl::CancelledError("the caller cancelled this gather")));
  }
  call->task->Record(absl::StatusCode::kCancelled);
}

void GatherStream::Say(grpc::ByteBuffer message) {
  outgoing_.push_back({std::move(message), nullptr});
}

void GatherStream::Abandon(const absl::Status& status) {
  if (abandoned_) return;
  abandoned_ = true;
  no_more_reads_ = true;
  final_status_ = status;
  for (const auto& [id, call] : calls_) {
    call->task->Cancel();
    call->task->Record(absl::StatusCode::kCancelled);
  }
  calls_.clear();
  left_waiting_ = waiting_.size();
  small_turns_.clear();
  large_turns_.clear();
  outgoing_.clear();
}

bool GatherStream::MayFinish() const {
  if (finished_ || writing_now_ || pumping_ || handling_ ||
      starting_reads_ > 0 || expiring_ > 0) {
    return false;
  }
  return no_more_reads_ && calls_.empty() && outgoing_.empty();
}

GatherStream::Action GatherStream::Decide() {
  Action action;
  if (finished_) return action;
  if (!writing_now_ && !outgoing_.empty()) {
    writing_ = std::move(outgoing_.front());
    outgoing_.pop_front();
    writing_now_ = action.write = true;
    writing_since_ = service_.clock.Now();
  }
  // Room for the errors of calls that are refused at once.
  const size_t max_outgoing = service_.limits.max_queued_pieces +
                              service_.limits.max_gathers_in_flight_per_stream;
  if (!reading_ && !no_more_reads_ && outgoing_.size() < max_outgoing) {
    reading_ = action.read = true;
    ++starting_reads_;
  }
  if (!pumping_ && NextTurns() != nullptr &&
      outgoing_.size() < service_.limits.max_queued_pieces) {
    pumping_ = action.pump = true;
  }
  if (MayFinish()) finished_ = action.finish = true;
  busy_ += action.read + action.write + action.pump + action.finish;
  return action;
}

void GatherStream::Advance() {
  while (true) {
    Action action;
    {
      MutexLock lock(&mutex_);
      action = Decide();
    }
    if (!action.any()) return;
    Start(action);
    if (action.finish) return;
  }
}

void GatherStream::Start(const Action& action) {
  if (action.write) stream_.Write(writing_.bytes, written_.tag());
  if (action.read) {
    stream_.Read(&incoming_, read_.tag());
    MutexLock lock(&mutex_);
    --starting_reads_;
  }
  if (action.pump) StartPump();
  if (!action.finish) return;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = final_status_;
  }
  stream_.Finish(ToGrpcStatus<grpc::Status>(status), finished_event_.tag());
}

}  // namespace engram

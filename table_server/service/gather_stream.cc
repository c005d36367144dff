#include "table_server/service/gather_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {

GatherStream::Reactor* GatherStream::Start(
    ServiceContext& service, const grpc::CallbackServerContext& context) {
  std::shared_ptr<GatherStream> stream(
      new GatherStream(service, absl::FromChrono(context.deadline())));
  stream->self_ = stream;
  if (!service.streams.Add(stream)) {
    MutexLock lock(&stream->mutex_);
    stream->Abandon(WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service.streams.limit(),
                               " streams is reached")),
        service.limits.retry_after));
  } else if (!service.accepting.load()) {
    // After Add: a drain that began meanwhile stops what it finds there.
    stream->Stop();
  }
  stream->Advance();
  return stream.get();
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

void GatherStream::DropExpired() {
  std::vector<std::pair<std::shared_ptr<StreamCall>, absl::Status>> dropped;
  {
    MutexLock lock(&mutex_);
    // The gather that the pump holds is not queued: it looks for itself.
    for (const auto& call : turns_) {
      absl::Status status = call->CheckAwaited();
      if (!status.ok()) dropped.emplace_back(call, std::move(status));
    }
    for (const auto& [call, status] : dropped) {
      std::erase(turns_, call);
      calls_.erase(call->id());
      outgoing_.push_back(StreamError(call->id(), status));
    }
  }
  for (const auto& [call, status] : dropped) call->Record(status.code());
}

void GatherStream::OnReadDone(bool ok) {
  v1::GatherStreamRequest request;
  {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok) no_more_reads_ = true;
    if (ok) request.Swap(&incoming_);
  }
  if (ok) Handle(std::move(request));
  Advance();
}

void GatherStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) Abandon(absl::CancelledError("the stream broke"));
  }
  Advance();
}

void GatherStream::OnCancel() {
  {
    MutexLock lock(&mutex_);
    Abandon(absl::CancelledError("the caller cancelled the stream"));
  }
  Advance();
}

void GatherStream::OnDone() {
  service_.streams.Remove(this);
  // Moved out first: destroying the member from within would destroy `this`
  // half way.
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
  absl::StatusOr<std::shared_ptr<StreamCall>> call = Admit(request);
  MutexLock lock(&mutex_);
  if (abandoned_) return;
  if (calls_.contains(call_id)) {
    return Abandon(absl::InvalidArgumentError(
        absl::StrCat("call id ", call_id, " is in use on this stream")));
  }
  if (!call.ok()) {
    service_.metrics.CallEnded(TableMethod::kGatherStream,
                               call.status().code());
    outgoing_.push_back(StreamError(call_id, call.status()));
    return;
  }
  calls_.emplace(call_id, *call);
  turns_.push_back(*std::move(call));
}

absl::StatusOr<std::shared_ptr<StreamCall>> GatherStream::Admit(
    v1::GatherStreamRequest& request) {
  const uint64_t limit = service_.limits.max_gathers_in_flight_per_stream;
  {
    MutexLock lock(&mutex_);
    // Messages that were on their way when the drain began.
    if (no_more_reads_) return service_.DrainingError();
    if (calls_.size() >= limit) {
      return WithRetryAfter(
          MakeError(ErrorReason::kOverloaded,
                    absl::StrCat(calls_.size(),
                                 " gathers are in flight on this stream, the "
                                 "limit is ",
                                 limit)),
          service_.limits.retry_after);
    }
  }
  ENGRAM_RETURN_IF_ERROR(CheckLayerCount(request.gather().layers_size()));
  const uint64_t rows = RowCountOf(request.gather());
  const uint64_t piece_bytes =
      std::min(rows * service_.gatherer.row_bytes(),
               std::max<uint64_t>(service_.limits.piece_bytes,
                                  service_.gatherer.row_bytes()));
  ENGRAM_ASSIGN_OR_RETURN(
      Admission::Ticket ticket,
      service_.admission.Enter(request.SpaceUsedLong() + piece_bytes));
  return std::make_shared<StreamCall>(service_, std::move(request),
                                      std::move(ticket), deadline_);
}

void GatherStream::HandleCancel(uint64_t call_id) {
  std::shared_ptr<StreamCall> call;
  {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(call_id);
    // Its last message may be on its way: nothing is left to cancel.
    if (found == calls_.end()) return;
    call = std::move(found->second);
    calls_.erase(found);
    call->Cancel();
    std::erase(turns_, call);
    outgoing_.push_back(StreamError(
        call_id, absl::CancelledError("the caller cancelled this gather")));
  }
  call->Record(absl::StatusCode::kCancelled);
}

// One piece only: the worker goes to whoever waits for it in the pool.
void GatherStream::Pump() {
  if (std::shared_ptr<StreamCall> call = TakeTurn()) {
    v1::GatherStreamResponse response = call->Next();
    PutBack(std::move(call), std::move(response));
  }
  Advance();
}

// The gather whose turn it is; null, and the pump is over, when there is none.
std::shared_ptr<StreamCall> GatherStream::TakeTurn() {
  MutexLock lock(&mutex_);
  if (turns_.empty()) {
    pumping_ = false;
    return nullptr;
  }
  std::shared_ptr<StreamCall> call = std::move(turns_.front());
  turns_.pop_front();
  return call;
}

void GatherStream::PutBack(std::shared_ptr<StreamCall> call,
                           v1::GatherStreamResponse response) {
  {
    MutexLock lock(&mutex_);
    pumping_ = false;
    const auto found = calls_.find(call->id());
    // Cancelled meanwhile; the id may even be in use again.
    if (found == calls_.end() || found->second != call) return;
    outgoing_.push_back(std::move(response));
    if (!call->ended()) {
      turns_.push_back(std::move(call));
      return;
    }
    calls_.erase(found);
  }
  call->Record(call->code());
}

void GatherStream::Abandon(const absl::Status& status) {
  if (abandoned_) return;
  abandoned_ = true;
  no_more_reads_ = true;
  final_status_ = status;
  for (const auto& [id, call] : calls_) {
    call->Cancel();
    call->Record(absl::StatusCode::kCancelled);
  }
  calls_.clear();
  turns_.clear();
  outgoing_.clear();
}

bool GatherStream::MayFinish() const {
  if (finished_ || writing_ || pumping_ || starting_reads_ > 0) return false;
  return no_more_reads_ && calls_.empty() && outgoing_.empty();
}

GatherStream::Action GatherStream::Decide() {
  Action action;
  if (finished_) return action;
  if (!writing_ && !outgoing_.empty()) {
    writing_response_ = std::move(outgoing_.front());
    outgoing_.pop_front();
    writing_ = action.write = true;
  }
  // Room for the errors of calls that are refused at once.
  const size_t max_outgoing = service_.limits.max_queued_pieces +
                              service_.limits.max_gathers_in_flight_per_stream;
  if (!reading_ && !no_more_reads_ && outgoing_.size() < max_outgoing) {
    reading_ = action.read = true;
    ++starting_reads_;
  }
  if (!pumping_ && !turns_.empty() &&
      outgoing_.size() < service_.limits.max_queued_pieces) {
    pumping_ = action.pump = true;
  }
  if (MayFinish()) finished_ = action.finish = true;
  return action;
}

void GatherStream::Advance() {
  DropExpired();
  while (true) {
    Action action;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      action = Decide();
      status = final_status_;
    }
    if (action.write) StartWrite(&writing_response_);
    if (action.pump) {
      auto self = shared_from_this();
      if (!service_.pool.TryAdd([self] { self->Pump(); })) {
        MutexLock lock(&mutex_);
        pumping_ = false;
        Abandon(WithRetryAfter(
            MakeError(ErrorReason::kOverloaded, "the queue of gathers is full"),
            service_.limits.retry_after));
      }
    }
    if (action.read) {
      StartRead(&incoming_);
      MutexLock lock(&mutex_);
      --starting_reads_;
    }
    if (action.finish) Finish(ToGrpcStatus<grpc::Status>(status));
    const bool again = action.write || action.pump || action.read;
    if (!again || action.finish) return;
  }
}

}  // namespace engram

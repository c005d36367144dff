#include "compute/worker/forward_call.h"

#include <grpcpp/support/status.h>

#include <utility>

#include "compute/worker/service.h"
#include "core/wire/error_detail.h"

namespace engram {

std::shared_ptr<ForwardCall> ForwardCall::Create(ComputeServiceImpl* service,
                                                 StepEngine* engine,
                                                 const ForwardLimits& limits,
                                                 CallerId caller) {
  const auto call = std::shared_ptr<ForwardCall>(
      new ForwardCall(service, engine, std::move(caller)));
  call->self_ = call;
  // Weak: steps that end after the stream keep the session, not the call.
  call->session_ =
      ForwardSession::Create(engine, limits, call->caller(),
                             [weak = std::weak_ptr<ForwardCall>(call)] {
                               if (const auto call = weak.lock()) call->Pump();
                             });
  return call;
}

void ForwardCall::Pump() {
  const std::shared_ptr<ForwardCall> keep = shared_from_this();
  {
    MutexLock lock(&mutex_);
    if (pumping_) {
      pump_again_ = true;  // whoever pumps looks once more
      return;
    }
    pumping_ = true;
  }
  while (true) {
    switch (NextAction()) {
      case Action::kNone:
        return;
      case Action::kRead:
        StartRead(&request_);
        break;
      case Action::kWrite:
        StartWrite(&reply_);
        break;
      case Action::kFinish:
        FinishStream();
        break;
    }
  }
}

ForwardCall::Action ForwardCall::NextAction() {
  MutexLock lock(&mutex_);
  while (true) {
    pump_again_ = false;
    const Action action = Choose();
    if (action != Action::kNone) return action;
    if (!pump_again_) break;
  }
  pumping_ = false;
  return Action::kNone;
}

ForwardCall::Action ForwardCall::Choose() {
  if (finished_) return Action::kNone;
  if (!writing_ && !finish_now_ && session_->TakeReply(&reply_)) {
    writing_ = true;
    return Action::kWrite;
  }
  if (!reading_ && !no_more_reads_ && !finish_now_ &&
      !session_->wants_pause()) {
    reading_ = true;
    return Action::kRead;
  }
  const bool last_said =
      (no_more_reads_ || finish_when_idle_) && session_->idle();
  if (!writing_ && (finish_now_ || last_said)) {
    finished_ = true;
    return Action::kFinish;
  }
  return Action::kNone;
}

void ForwardCall::FinishStream() {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = final_status_;
  }
  engine_->metrics().CallEnded("Forward", status.code());
  Finish(ToGrpcStatus<grpc::Status>(status));
}

void ForwardCall::FinishWhenIdle(absl::Status status) {
  {
    MutexLock lock(&mutex_);
    if (finish_now_ || finish_when_idle_) return;
    finish_when_idle_ = true;
    final_status_ = std::move(status);
  }
  Pump();
}

void ForwardCall::FinishNow(absl::Status status) {
  session_->Cancel();
  {
    MutexLock lock(&mutex_);
    if (!finish_now_) final_status_ = std::move(status);
    finish_now_ = true;
  }
  Pump();
}

void ForwardCall::OnReadDone(bool ok) {
  absl::Status status;
  if (ok) {
    status = session_->Handle(std::move(request_));
  } else {
    session_->EndOfRequests();
  }
  {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok) no_more_reads_ = true;
  }
  if (!status.ok()) return FinishNow(std::move(status));
  Pump();
}

void ForwardCall::OnWriteDone(bool ok) {
  session_->ReplySent();
  {
    MutexLock lock(&mutex_);
    writing_ = false;
  }
  if (!ok) return FinishNow(absl::CancelledError("the caller is gone"));
  Pump();
}

void ForwardCall::OnCancel() {
  FinishNow(absl::CancelledError("the caller cancelled the stream"));
}

void ForwardCall::OnDone() {
  session_->Cancel();
  service_->ForwardEnded(this);
  const std::shared_ptr<ForwardCall> last = std::move(self_);
}

}  // namespace engram

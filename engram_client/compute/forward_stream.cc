#include "engram_client/compute/forward_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/wire/error_detail.h"

namespace engram {

// ---- StepReplies ----

void StepReplies::Push(Reply reply) {
  MutexLock lock(&mutex_);
  replies_.push_back(std::move(reply));
  changed_.NotifyAll();
}

std::optional<StepReplies::Reply> StepReplies::WaitNext(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (replies_.empty()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) break;
  }
  if (replies_.empty()) return std::nullopt;
  Reply reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

// ---- ForwardStream ----

std::shared_ptr<ForwardStream> ForwardStream::Open(
    v1::ComputeService::Stub& stub, std::string worker) {
  const auto stream =
      std::shared_ptr<ForwardStream>(new ForwardStream(std::move(worker)));
  stream->self_ = stream;
  stream->Start(stub);
  return stream;
}

void ForwardStream::Start(v1::ComputeService::Stub& stub) {
  stub.async()->Forward(&context_, this);
  AddHold();  // for the writes, which come from outside reactions
  StartRead(&response_);
  StartCall();
}

uint64_t ForwardStream::AddStep(const RunReplies& replies) {
  std::optional<absl::Status> end;
  uint64_t id = 0;
  {
    MutexLock lock(&mutex_);
    id = ++last_step_id_;
    end = end_;
    if (!end.has_value()) steps_.emplace(id, replies);
  }
  if (end.has_value()) replies.End(*std::move(end));
  return id;
}

void ForwardStream::RemoveStep(uint64_t step_id) {
  std::list<v1::ForwardRequest> unsent;  // freed without the lock
  const v1::ForwardRequest* cancel = nullptr;
  {
    MutexLock lock(&mutex_);
    bool in_flight = steps_.erase(step_id) > 0;
    for (auto write = writes_.begin(); write != writes_.end();) {
      const auto here = write++;
      if (here == writes_.begin() || here->step_id() != step_id) continue;
      if (here->has_begin()) in_flight = false;
      unsent.splice(unsent.end(), writes_, here);
    }
    if (!in_flight) return;
    v1::ForwardRequest request;
    request.set_step_id(step_id);
    request.mutable_cancel();
    cancel = Queue(std::move(request));
  }
  if (cancel != nullptr) StartWrite(cancel);
}

size_t ForwardStream::steps_in_flight() const {
  MutexLock lock(&mutex_);
  return steps_.size();
}

void ForwardStream::Send(v1::ForwardRequest request) {
  const v1::ForwardRequest* first = nullptr;
  {
    MutexLock lock(&mutex_);
    first = Queue(std::move(request));
  }
  // The hold stays while writing_, so the call is still open here.
  if (first != nullptr) StartWrite(first);
}

const v1::ForwardRequest* ForwardStream::Queue(v1::ForwardRequest request) {
  if (broken_) return nullptr;
  writes_.push_back(std::move(request));
  return std::exchange(writing_, true) ? nullptr : &writes_.front();
}

void ForwardStream::OnWriteDone(bool ok) {
  if (!ok) Break();
  const v1::ForwardRequest* next = nullptr;
  bool remove_hold = false;
  {
    MutexLock lock(&mutex_);
    writes_.pop_front();
    if (broken_) {
      writes_.clear();
    } else if (!writes_.empty()) {
      next = &writes_.front();
    }
    writing_ = next != nullptr;
    if (broken_ && !writing_) remove_hold = std::exchange(hold_, false);
  }
  if (next != nullptr) StartWrite(next);
  if (remove_hold) RemoveHold();
}

void ForwardStream::OnReadDone(bool ok) {
  if (!ok) return Break();
  Deliver(std::move(response_));
  StartRead(&response_);
}

void ForwardStream::Deliver(v1::ForwardResponse response) {
  RunReplies replies;
  const bool is_end = response.kind_case() == v1::ForwardResponse::kEnd;
  {
    MutexLock lock(&mutex_);
    const auto found = steps_.find(response.step_id());
    if (found == steps_.end()) return;  // its caller has gone
    replies = found->second;
    if (is_end) steps_.erase(found);
  }
  if (is_end) {
    replies.End(FromRpcStatusProto(response.end().status()));
  } else if (response.kind_case() == v1::ForwardResponse::kResult) {
    replies.Push(std::move(*response.mutable_result()));
  }
}

void ForwardStream::Break() {
  bool remove_hold = false;
  {
    MutexLock lock(&mutex_);
    broken_ = true;
    if (!writing_) remove_hold = std::exchange(hold_, false);
  }
  if (remove_hold) RemoveHold();
}

absl::Status ForwardStream::EndStatus(const grpc::Status& status) const {
  const absl::Status end = FromGrpcStatus(status);
  switch (end.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      // A worker that went away; another one can take the step.
      return absl::UnavailableError(
          absl::StrCat("the stream to worker ", worker_,
                       " broke: ", end.ok() ? "it was closed" : end.message()));
    default:
      return Annotate(end, absl::StrCat("the stream to worker ", worker_));
  }
}

void ForwardStream::OnDone(const grpc::Status& status) {
  const absl::Status end = EndStatus(status);
  std::unordered_map<uint64_t, RunReplies> steps;
  {
    MutexLock lock(&mutex_);
    broken_ = true;
    end_ = end;
    steps.swap(steps_);
  }
  for (const auto& [id, replies] : steps) replies.End(end);
  // Whoever waits for the end may end the channel next: nothing here keeps it
  // any more when they are told.
  const std::shared_ptr<Notification> ended = ended_;
  std::exchange(self_, nullptr).reset();
  ended->Notify();
}

bool ForwardStream::broken() const {
  MutexLock lock(&mutex_);
  return broken_;
}

void ForwardStream::Close() {
  Cancel();
  ended_->Wait();
}

}  // namespace engram

#ifndef ENGRAM_CORE_RPC_QUEUE_CALLS_H_
#define ENGRAM_CORE_RPC_QUEUE_CALLS_H_

// Calls on completion queues that are small and seldom: simple to write, not
// tuned.

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"

namespace engram {

// A unary call that is answered as soon as it arrives. Deletes itself when it
// is done.
template <typename Request, typename Response>
class UnaryCall final {
 public:
  using Writer = grpc::ServerAsyncResponseWriter<Response>;

  struct Method {
    // Asks gRPC for a call (RequestX of the generated service), on the queue of
    // the loop.
    std::function<void(grpc::ServerContext*, Request*, Writer*, void* tag)> ask;
    std::function<grpc::Status(const Request&, Response&)> answer;
  };

  // Asks for the next call; that one asks for the next.
  static void Await(QueueLoop& loop, Method method) {
    auto* const call = new UnaryCall(loop, std::move(method));
    call->method_.ask(&call->context_, &call->request_, &call->writer_,
                      call->arrived_.tag());
  }

 private:
  UnaryCall(QueueLoop& loop, Method method)
      : loop_(loop), hold_(loop), method_(std::move(method)) {}

  void OnArrived(bool ok) {
    if (!ok) {  // the server shuts down; no call has begun
      delete this;
      return;
    }
    Await(loop_, method_);
    Response response;
    const grpc::Status status = method_.answer(request_, response);
    if (status.ok()) {
      writer_.Finish(response, status, finished_.tag());
    } else {
      writer_.FinishWithError(status, finished_.tag());
    }
  }

  void OnFinished(bool) { delete this; }

  QueueLoop& loop_;
  const QueueLoop::Hold hold_;
  const Method method_;
  MemberEvent<UnaryCall, &UnaryCall::OnArrived> arrived_{this};
  MemberEvent<UnaryCall, &UnaryCall::OnFinished> finished_{this};
  grpc::ServerContext context_;
  Request request_;
  Writer writer_{&context_};
};

// A call that is answered by a stream of messages, made one at a time when
// there is something to tell: a caller who reads slowly costs no memory.
//
// Thread safety: all methods may be called concurrently.
template <typename Request, typename Response>
class WriteStream {
 public:
  virtual ~WriteStream() = default;

  // Starts the next message or the end, unless one is under way.
  void Advance() {
    Step step = Step::kWait;
    grpc::Status status;
    {
      MutexLock lock(&mutex_);
      step = Decide();
      if (step == Step::kFinish) status = final_status_;
    }
    // Whoever decides for a step is the only one to start an operation until
    // it is done.
    if (step == Step::kWrite) {
      BeforeWrite(message_);
      writer_.Write(message_, written_.tag());
    }
    if (step == Step::kFinish) writer_.Finish(status, finished_event_.tag());
  }

  // The call ends with `status`, unless it ends already; what there was to tell
  // is told before when `tell_first`.
  void End(const grpc::Status& status, bool tell_first = false) {
    {
      MutexLock lock(&mutex_);
      EndLocked(status, tell_first);
    }
    Advance();
  }

 protected:
  explicit WriteStream(QueueLoop& loop) : hold_(loop) {
    context_.AsyncNotifyWhenDone(call_ended_.tag());
  }

  // What asking gRPC for the call takes. `self` is released at its end.
  void* Arm(std::shared_ptr<void> self) {
    self_ = std::move(self);
    return arrived_.tag();
  }
  grpc::ServerContext* context() { return &context_; }
  Request* request() { return &request_; }
  grpc::ServerAsyncWriter<Response>* writer() { return &writer_; }

  // The call has arrived: asks for the next, and may Advance or End this one.
  virtual void Begin() = 0;
  // Fills `message`, the one before if any, with what there is to tell; false:
  // nothing. Called by one thread at a time, under a lock: no blocking.
  virtual bool MakeMessage(Response& message) = 0;
  // `message` was made and is about to be written; no lock is held. What the
  // next one takes may be started now.
  virtual void BeforeWrite(const Response& /*message*/) {}
  // The call is over; nothing else is called after.
  virtual void OnEnded(const grpc::Status& status) = 0;

 private:
  enum class Step { kWait, kWrite, kFinish };

  Step Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (busy_) return Step::kWait;
    if ((!ending_ || tell_first_) && MakeMessage(message_)) {
      busy_ = true;
      ++events_left_;
      return Step::kWrite;
    }
    if (!ending_) return Step::kWait;
    busy_ = true;  // for good
    return Step::kFinish;
  }

  void EndLocked(const grpc::Status& status, bool tell_first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tell_first_ = tell_first && (!ending_ || tell_first_);
    if (ending_) return;
    ending_ = true;
    final_status_ = status;
  }

  void OnArrived(bool ok) {
    if (!ok) {  // the server shuts down; no call has begun
      const std::shared_ptr<void> self = std::move(self_);
      return;
    }
    // A call keeps its request for as long as it lives.
    request_.DiscardUnknownFields();
    Begin();
    EventEnded();
  }

  void OnWritten(bool ok) {
    {
      MutexLock lock(&mutex_);
      busy_ = false;
      if (!ok) {
        EndLocked({grpc::StatusCode::CANCELLED, "the stream broke"}, false);
      }
    }
    Advance();
    EventEnded();
  }

  void OnCallEnded(bool) {
    if (context_.IsCancelled()) {
      End({grpc::StatusCode::CANCELLED, "the caller cancelled the call"});
    }
    EventEnded();
  }

  void OnFinished(bool) { EventEnded(); }

  // The last event releases the call: nothing may touch it after.
  void EventEnded() {
    grpc::Status status;
    {
      MutexLock lock(&mutex_);
      if (--events_left_ > 0) return;
      status = final_status_;
    }
    OnEnded(status);
    // Moved out first: destroying the member from within would destroy `this`
    // half way.
    const std::shared_ptr<void> self = std::move(self_);
  }

  const QueueLoop::Hold hold_;
  std::shared_ptr<void> self_;
  MemberEvent<WriteStream, &WriteStream::OnArrived> arrived_{this};
  MemberEvent<WriteStream, &WriteStream::OnWritten> written_{this};
  MemberEvent<WriteStream, &WriteStream::OnFinished> finished_event_{this};
  MemberEvent<WriteStream, &WriteStream::OnCallEnded> call_ended_{this};
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncWriter<Response> writer_{&context_};
  Response message_;  // owned by the write under way

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // a write or the end
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Of an ending call: messages go before the end.
  bool tell_first_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status final_status_ ABSL_GUARDED_BY(mutex_);
  // arrived_, call_ended_, finished_event_, and a write under way.
  int events_left_ ABSL_GUARDED_BY(mutex_) = 3;
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_QUEUE_CALLS_H_

#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_FORWARD_STREAM_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_FORWARD_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "engram/v1/compute.grpc.pb.h"

namespace engram {

// What has come back for one step from its runs, which each are on one worker,
// until the step's thread takes it: gRPC's threads never write to a caller's
// buffers. Bounded by what the step has asked and not taken.
//
// Thread safety: all methods may be called concurrently.
class StepReplies {
 public:
  // One of the two, from one of the runs.
  struct Reply {
    uint64_t run = 0;
    std::optional<v1::StepResult> result;
    std::optional<absl::Status> end;  // OK: the worker finished the step
  };

  void Push(Reply reply);

  // In the order they came; nothing when the time is over.
  std::optional<Reply> WaitNext(absl::Time deadline);

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mutex_);
};

// Where the replies to one run of a step go. The run ends once.
struct RunReplies {
  std::shared_ptr<StepReplies> step;
  uint64_t run = 0;  // of the step

  void Push(v1::StepResult result) const {
    step->Push({.run = run, .result = std::move(result), .end = std::nullopt});
  }
  void End(absl::Status status) const {
    step->Push({.run = run, .result = std::nullopt, .end = std::move(status)});
  }
};

// A Forward stream to one worker, shared by many steps. Owns itself until gRPC
// is done with it; once broken it stays so. It keeps its channel, which must
// not end on a thread of gRPC (see call_set.h): the channel's owner waits for
// the end of every stream.
//
// Thread safety: all methods may be called concurrently.
class ForwardStream final
    : public grpc::ClientBidiReactor<v1::ForwardRequest, v1::ForwardResponse>,
      public std::enable_shared_from_this<ForwardStream> {
 public:
  // `worker` names it in errors.
  static std::shared_ptr<ForwardStream> Open(v1::ComputeService::Stub& stub,
                                             std::string worker);

  // A new step id whose replies go to `replies`. Should the stream break, they
  // end with UNAVAILABLE, or with what the worker ended the stream with.
  uint64_t AddStep(const RunReplies& replies);
  // No more replies for this step. What of it has not been sent is dropped; a
  // worker that knows of the step and has not ended it is told to cancel it.
  void RemoveStep(uint64_t step_id);
  // Steps that have neither ended nor been removed.
  size_t steps_in_flight() const;

  // Queues a message; dropped when the stream is broken (the step then hears
  // so by its replies).
  void Send(v1::ForwardRequest request);

  bool broken() const;
  // Cancels the call, whose end then comes at once.
  void Cancel() { context_.TryCancel(); }
  // Whether gRPC is done with it: only shared_ptrs of others keep it.
  bool ended() const { return ended_->HasBeenNotified(); }
  // Cancels the call and waits for its end (bounded: gRPC ends it at once).
  void Close();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  explicit ForwardStream(std::string worker) : worker_(std::move(worker)) {}

  void Start(v1::ComputeService::Stub& stub);
  // Queues a message; returns it when the caller has to start its write.
  const v1::ForwardRequest* Queue(v1::ForwardRequest request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(v1::ForwardResponse response);
  // Marks the stream broken. The hold that keeps the call open for writes
  // from outside goes with the last of them.
  void Break();
  absl::Status EndStatus(const grpc::Status& status) const;

  const std::string worker_;
  grpc::ClientContext context_;
  v1::ForwardResponse response_;         // gRPC's while a read goes on
  std::shared_ptr<ForwardStream> self_;  // until OnDone
  // Outlives the stream, which may go before it can say so itself.
  const std::shared_ptr<Notification> ended_ = std::make_shared<Notification>();

  mutable Mutex mutex_;
  std::unordered_map<uint64_t, RunReplies> steps_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_step_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // The first is gRPC's while writing_, which is while there is one.
  std::list<v1::ForwardRequest> writes_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool hold_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_FORWARD_STREAM_H_

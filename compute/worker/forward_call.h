#ifndef ENGRAM_COMPUTE_WORKER_FORWARD_CALL_H_
#define ENGRAM_COMPUTE_WORKER_FORWARD_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/forward_session.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"

namespace engram {

class ComputeServiceImpl;

// One Forward stream's reads and writes around a ForwardSession. Owns itself
// until gRPC is done with it.
//
// Every operation on the stream is started by Pump, which one thread at a time
// goes through: so nothing is started after Finish, and no lock is held while
// gRPC is called.
class ForwardCall final
    : public grpc::ServerBidiReactor<v1::ForwardRequest, v1::ForwardResponse>,
      public std::enable_shared_from_this<ForwardCall> {
 public:
  static std::shared_ptr<ForwardCall> Create(ComputeServiceImpl* service,
                                             StepEngine* engine,
                                             const ForwardLimits& limits,
                                             CallerId caller);

  const CallerId& caller() const { return caller_; }

  // Reads on, writes, or finishes, as the session's state asks.
  void Pump();
  // Ends the stream with `status` once its steps are done (DRAINING).
  void FinishWhenIdle(absl::Status status);
  // Ends the stream now; its steps are cancelled.
  void FinishNow(absl::Status status);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Action { kNone, kRead, kWrite, kFinish };

  ForwardCall(ComputeServiceImpl* service, StepEngine* engine, CallerId caller)
      : service_(service), engine_(engine), caller_(std::move(caller)) {}

  Action NextAction();
  Action Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishStream();

  ComputeServiceImpl* const service_;
  StepEngine* const engine_;
  const CallerId caller_;
  std::shared_ptr<ForwardSession> session_;
  std::shared_ptr<ForwardCall> self_;  // until OnDone

  // Each is gRPC's while its operation goes on.
  v1::ForwardRequest request_;
  v1::ForwardResponse reply_;

  Mutex mutex_;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  bool pump_again_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_reads_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_now_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_when_idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_FORWARD_CALL_H_

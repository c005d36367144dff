#ifndef ENGRAM_COMPUTE_WORKER_APPLY_CALL_H_
#define ENGRAM_COMPUTE_WORKER_APPLY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/step.h"
#include "compute/worker/step_engine.h"
#include "compute/worker/stream_reservation.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"

namespace engram {

// One unary Apply: a step whose chunks are whole layers. Owns itself until
// gRPC is done with it.
class ApplyCall final : public grpc::ServerUnaryReactor,
                        public StepObserver,
                        public std::enable_shared_from_this<ApplyCall> {
 public:
  // `request` and `response` are gRPC's and stay until OnDone. A request of
  // more than `max_bytes` is TOO_LARGE.
  static grpc::ServerUnaryReactor* Start(StepEngine* engine, uint64_t max_bytes,
                                         grpc::CallbackServerContext* context,
                                         const v1::ApplyRequest* request,
                                         v1::ApplyResponse* response);

  void OnResult(StepChunkResult result) override;
  void OnEnd(const absl::Status& status) override;

  void OnCancel() override;
  void OnDone() override;

 private:
  ApplyCall(StepEngine* engine, CallerId caller,
            const v1::ApplyRequest* request, v1::ApplyResponse* response)
      : engine_(engine),
        caller_(std::move(caller)),
        request_(request),
        response_(response) {}

  // Of request and response, until OnDone.
  absl::Status Reserve(uint64_t max_bytes);
  void Begin(absl::Time deadline);
  absl::Status CheckStreamBytes(const StepRequest& step) const;

  StepEngine* const engine_;
  const CallerId caller_;
  const v1::ApplyRequest* const request_;
  v1::ApplyResponse* const response_;
  std::shared_ptr<ApplyCall> self_;  // until OnDone
  StreamReservation reserved_;

  Mutex mutex_;
  std::shared_ptr<Step> step_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_APPLY_CALL_H_

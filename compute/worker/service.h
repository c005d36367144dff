#ifndef ENGRAM_COMPUTE_WORKER_SERVICE_H_
#define ENGRAM_COMPUTE_WORKER_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "compute/worker/fair_share.h"
#include "compute/worker/forward_session.h"
#include "compute/worker/step_engine.h"
#include "core/base/mutex.h"
#include "core/rpc/channel.h"
#include "engram/v1/compute.grpc.pb.h"

namespace engram {

class ForwardCall;

// Of one ApplyRequest. So far below what a server accepts that a request
// somewhat too large is told so by TOO_LARGE.
inline constexpr uint64_t kMaxApplyBytes = kMaxMessageBytes - (4 << 20);

// engram.v1.ComputeService over a StepEngine: gRPC in and out, nothing else.
// Never hashes or computes on a gRPC thread.
//
// Thread safety: all methods may be called concurrently.
class ComputeServiceImpl final : public v1::ComputeService::CallbackService {
 public:
  struct Options {
    StepEngine* engine = nullptr;  // outlives the service's calls
    ForwardLimits limits;
    size_t max_forward_streams = 1024;  // divided as the engine's bounds
    uint64_t max_apply_bytes = kMaxApplyBytes;
  };

  explicit ComputeServiceImpl(const Options& options);
  ~ComputeServiceImpl() override;

  // New steps and streams get DRAINING; a stream ends with DRAINING once its
  // steps are done. Steps in flight go on.
  void Drain();

  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* request,
                                     v1::GetModelResponse* response) override;
  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* context,
                                  const v1::ApplyRequest* request,
                                  v1::ApplyResponse* response) override;
  grpc::ServerBidiReactor<v1::ForwardRequest, v1::ForwardResponse>* Forward(
      grpc::CallbackServerContext* context) override;

 private:
  friend class ForwardCall;

  // OK registers the stream until ForwardEnded. DRAINING, OVERLOADED.
  absl::Status AddForward(const std::shared_ptr<ForwardCall>& call);
  void ForwardEnded(const ForwardCall* call);

  const Options options_;
  Mutex mutex_;
  std::unordered_map<const ForwardCall*, std::weak_ptr<ForwardCall>> forwards_
      ABSL_GUARDED_BY(mutex_);
  FairShare forward_share_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_SERVICE_H_

#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "engram/v1/compute.pb.h"
#include "engram_client/compute/attempts.h"
#include "engram_client/compute/forward_stream.h"
#include "engram_client/compute/step_messages.h"
#include "engram_client/compute/worker_set.h"
#include "engram_client/compute_client.h"

namespace engram {

// A step on Forward streams. When its worker fails, the step begins again on
// another one with the layers that have no result yet.
class RemoteStep final : public ComputeClient::Step {
 public:
  // `model` and `workers` outlive the step.
  RemoteStep(const ModelInfo* model, WorkerSet* workers,
             std::vector<StepSequence> sequences, StepDtype dtype,
             StepReturn what, std::vector<LayerId> layers, absl::Time deadline);
  ~RemoteStep() override;

  // Sends the step to a first worker.
  absl::Status Begin();
  absl::Status Layer(const StepLayerIo& io) override;
  absl::Status Finish() override;

 private:
  // The step as it runs on one worker.
  struct Run {
    std::unique_ptr<WorkerSet::Lease> lease;
    std::shared_ptr<StepReplies> replies;
    WorkerLink::Place place;
    bool answered = false;  // has had a result
  };

  absl::Status EnsureRunning();
  absl::Status RunLayer(const StepLayerIo& io);
  // Sends the chunk that starts at `first_token`; returns its tokens.
  uint64_t SendChunk(const StepLayerIo& io, uint64_t first_token);
  // Waits for one chunk's answer and takes it off `unanswered` (first token ->
  // tokens).
  absl::Status TakeResult(const StepLayerIo& io,
                          std::map<uint64_t, uint64_t>& unanswered);
  absl::Status TooLate();
  void StopRunning();  // cancels what has not ended

  const ModelInfo& model_;
  const StepShape shape_;
  v1::StepBegin begin_;  // with the layers that have no result yet
  Attempts attempts_;
  std::unique_ptr<Run> run_;
  absl::Status failed_;  // not OK: what ended the step for good
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_

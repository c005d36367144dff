#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "engram/v1/compute.pb.h"
#include "engram_client/compute/attempts.h"
#include "engram_client/compute/forward_stream.h"
#include "engram_client/compute/step_messages.h"
#include "engram_client/compute/step_monitor.h"
#include "engram_client/compute/worker_set.h"
#include "engram_client/compute_client.h"

namespace engram {

// A step on Forward streams. When its worker fails, the step begins again on
// another one with the layers that have no result yet. When its worker is
// silent, it begins on another one too, and goes on where the whole layer was
// answered first.
class RemoteStep final : public ComputeClient::Step {
 public:
  // `model`, `workers` and `monitor` outlive the step.
  RemoteStep(const ModelInfo* model, WorkerSet* workers, StepMonitor* monitor,
             std::vector<StepSequence> sequences, StepDtype dtype,
             StepReturn what, std::vector<LayerId> layers,
             const StepOptions& options);
  ~RemoteStep() override;

  // Sends the step to a first worker.
  absl::Status Begin();
  absl::Status Layer(const StepLayerIo& io) override;
  absl::Status Finish() override;

 private:
  // The step as it runs on one worker.
  struct Run {
    uint64_t number = 0;
    std::unique_ptr<WorkerSet::Lease> lease;
    WorkerLink::Place place;
    bool answered = false;  // has had a result
    // Of the layer that is waited for.
    absl::Time layer_began;                   // on the steady clock
    uint64_t sent = 0;                        // tokens
    std::map<uint64_t, uint64_t> unanswered;  // first token -> tokens

    void StartLayer();
  };

  absl::Status EnsureRunning();
  void BeginOn(std::unique_ptr<WorkerSet::Lease> lease);
  bool IsOpen(LayerId layer) const;  // has no result yet
  // begin_ with what is left of its times.
  v1::StepBegin BeginNow() const;
  absl::Status RunLayer(const StepLayerIo& io);
  // Sends what may be on its way at a time.
  void SendChunks(const StepLayerIo& io, Run& run);
  // Sends the chunk that starts at `first_token`; returns its tokens.
  uint64_t SendChunk(const StepLayerIo& io, const Run& run,
                     uint64_t first_token);
  // No reply came by the time that was waited for.
  absl::Status OnSilence();
  absl::Status TakeReply(const StepLayerIo& io, Run& run,
                         const StepReplies::Reply& reply);
  absl::Status TakeResult(const StepLayerIo& io, Run& run,
                          const v1::StepResult& result);
  // The run had the whole layer first: the step goes on there.
  void GoOnWith(Run& run);
  // Not OK: it was the last run, and the step cannot go on elsewhere.
  absl::Status GiveUp(Run& run, const absl::Status& status);
  absl::Status AwaitEnd(const Run& run);
  Run* Find(uint64_t number);
  void Stop(const Run& run);  // cancels it if it has not ended
  void StopAll();

  const ModelInfo& model_;
  const StepShape shape_;
  const std::vector<std::pair<LayerId, absl::Time>> rows_deadlines_;
  v1::StepBegin begin_;  // with the layers that have no result yet
  Attempts attempts_;
  const std::shared_ptr<StepReplies> replies_ = std::make_shared<StepReplies>();
  uint64_t last_run_ = 0;
  // At most two, the first of which is to be hedged.
  std::vector<std::unique_ptr<Run>> runs_;
  absl::Time ran_until_ = absl::InfinitePast();  // some run, as last looked at
  absl::Status failed_;  // not OK: what ended the step for good
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_REMOTE_STEP_H_

#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_APPLY_STEP_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_APPLY_STEP_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"
#include "engram_client/compute/attempts.h"
#include "engram_client/compute/worker_set.h"

namespace engram {

// A step by the unary Apply: on one worker after another when they fail, on a
// second one too when the first is silent. Thread safety: one thread.
class ApplyStep {
 public:
  // What is done with an answer, on the thread of Run. Not OK: it is none.
  using Take = absl::FunctionRef<absl::Status(const v1::ApplyResponse&)>;

  // `request` and what `attempts` uses outlive the step.
  ApplyStep(const v1::ApplyRequest* request, Attempts attempts);
  // Cancels the calls in flight and waits for their end (bounded: gRPC ends
  // them at once), since none may end its channel on a thread of gRPC.
  ~ApplyStep();
  ApplyStep(const ApplyStep&) = delete;
  ApplyStep& operator=(const ApplyStep&) = delete;

  // OK once `take` has said so.
  absl::Status Run(Take take);

 private:
  struct Call;

  void Send(std::unique_ptr<WorkerSet::Lease> lease);
  // A call that has ended; null when none has at `until`.
  Call* AwaitEnd(absl::Time until);
  // Sends the step to a second worker, if there is one for it.
  void Hedge();
  void OnAnswer(const Call& call);
  // Not OK: it was the last call, and the step cannot go on elsewhere.
  absl::Status OnFailure(const Call& call, const absl::Status& status);

  const v1::ApplyRequest& request_;
  Attempts attempts_;
  Mutex mutex_;
  CondVar ended_;
  // At most two, the first of which is to be hedged.
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_APPLY_STEP_H_

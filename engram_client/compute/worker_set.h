#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_SET_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_SET_H_

#include <grpcpp/client_context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"
#include "engram_client/compute/step_metrics.h"
#include "engram_client/compute/worker_link.h"
#include "engram_client/compute_client.h"
#include "engram_client/rpc/timer_queue.h"

namespace engram {

// The workers of one client: asks each what it computes until it is ready, and
// gives steps to the ready one with the fewest steps in flight (the next in
// turn among equals). A worker of another version never gets a step.
//
// A worker that is silent about several steps in a row is left until it has
// answered that question again, later each time, and is then on trial: one step
// at a time, until some were answered. No more than half of the workers that
// answer are left so: where all are slow, leaving one overloads the others.
//
// Thread safety: all methods may be called concurrently. Leases must be gone
// before the set is destroyed.
class WorkerSet {
 public:
  // What one worker takes; they may differ.
  struct Limits {
    uint64_t max_tokens_per_step = 0;
    uint64_t max_chunk_bytes = 0;
    uint64_t max_steps_per_stream = 0;  // 0: it told none
  };

  // A worker that was chosen for a step, which counts as in flight there.
  class Lease {
   public:
    Lease(WorkerSet* set, size_t index, const Limits& limits)
        : set_(set), index_(index), limits_(limits) {}
    ~Lease() { set_->Release(index_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    size_t index() const { return index_; }
    WorkerLink& link() const { return *set_->workers_[index_].link; }
    const Limits& limits() const { return limits_; }

   private:
    WorkerSet* const set_;
    const size_t index_;
    const Limits limits_;
  };

  // Starts to ask. `metrics`, of which it sets the workers', must outlive it.
  // REQUIRES: addresses are not empty.
  WorkerSet(const std::vector<std::string>& addresses, StepMetrics* metrics);
  ~WorkerSet();
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;

  // Waits until every worker has answered or failed once, and one has said
  // what it computes. The limits are those that every worker which has
  // answered keeps. FAILED_PRECONDITION: two workers of different models.
  // UNAVAILABLE: nobody answered in time.
  absl::StatusOr<ModelInfo> WaitForModel(absl::Time deadline);

  // A ready worker, none of `avoid` (flags by index). Waits for one; null when
  // all that are ready are to be avoided.
  // DEADLINE_EXCEEDED: none was ready in time; the message says why not.
  // FAILED_PRECONDITION: every worker is of another version.
  absl::StatusOr<std::unique_ptr<Lease>> Take(const std::vector<bool>& avoid,
                                              absl::Time deadline);

  // A ready worker, none of `avoid`, that can take a step which others have
  // too. Null: there is none at the moment.
  std::unique_ptr<Lease> TakeForHedge(const std::vector<bool>& avoid);

  // A call to this worker failed: no steps for it until it has answered again.
  void MarkDown(size_t index, const absl::Status& status);

  // What was asked of this worker it has answered.
  void Answered(size_t index);
  // It has not, and others have had the time. True: it is left now.
  bool Silent(size_t index);
  // Not by a step's deadline: it gets no step before it has told its model
  // again. True: nor for a while, others being well.
  bool HeardNothing(size_t index);
  // Whether it was silent since its last answer.
  bool IsSuspect(size_t index) const;

  size_t size() const { return workers_.size(); }

 private:
  enum class State { kUnasked, kDown, kReady, kOtherModel };
  // `link` is constant; all else is under the set's mutex.
  struct Worker {
    std::unique_ptr<WorkerLink> link;
    State state = State::kUnasked;
    absl::Status error;            // why it is not ready
    std::optional<Limits> limits;  // from its last answer
    uint64_t steps_in_flight = 0;
    bool asking = false;  // a call goes on or is scheduled
    uint32_t failures = 0;
    uint32_t silences = 0;   // since its last answer
    uint32_t ejections = 0;  // for silence, since it last passed its trial
    uint32_t trial = 0;      // answers to go; 0: it is not on trial
  };
  struct Question;

  void Ask(size_t index);
  void OnAnswer(size_t index, const absl::Status& status,
                const v1::GetModelResponse& response);
  // What is new: OK: it is ready; else why not.
  std::optional<absl::Status> TakeAnswer(size_t index,
                                         absl::StatusOr<ModelInfo> model,
                                         const v1::GetModelResponse& response);
  absl::Status CheckModel(const ModelInfo& model, const Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskLater(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskAfter(size_t index, absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetDown(size_t index, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Eject(size_t index, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogLeft(size_t index, const absl::Status& why) const;
  bool MayEject(size_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Lease> LeaseOf(size_t index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Trials { kNone, kIdle, kAll };  // workers on trial to choose from
  std::optional<size_t> Choose(const std::vector<bool>& avoid, Trials trials)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool All(State state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Any(State state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Errors() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(size_t index);

  StepMetrics* const metrics_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Worker> workers_;  // never grows
  std::optional<ModelInfo> model_ ABSL_GUARDED_BY(mutex_);
  size_t next_in_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Question*> questions_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimerQueue timers_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_SET_H_

#ifndef ENGRAM_COMPUTE_WORKER_STEP_ENGINE_H_
#define ENGRAM_COMPUTE_WORKER_STEP_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compute/block/engram_block.h"
#include "compute/block/row_source.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/fair_pool.h"
#include "compute/worker/fair_share.h"
#include "compute/worker/metrics.h"
#include "compute/worker/step.h"
#include "compute/worker/step_request.h"
#include "compute/worker/stream_reservation.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"

namespace engram {

// OVERLOADED with RetryInfo: `what` is at its limit.
absl::Status OverloadedError(absl::string_view what);

// Takes `amount` of a bound for the caller. Else counts the refusal and says
// it: OVERLOADED.
absl::Status TakeShare(FairShare& share, WorkerBound bound,
                       const CallerId& caller, uint64_t amount,
                       WorkerMetrics& metrics);

// All steps of a worker: admits them, bounds what they hold together, ends
// those whose time is over.
//
// Callers cannot keep each other out: each bound is divided as FairShare says,
// and hashing and computing take one step's or one run's turn of every caller
// after the other.
//
// Thread safety: all methods may be called concurrently. The destructor
// cancels what is in flight and waits for its end.
class StepEngine {
 public:
  struct Options {
    std::string version;      // table version id that is served
    std::string worker_name;  // for errors
    // All outlive the engine. `compute_pool` is the block's.
    const EngramBlock* block = nullptr;
    ThreadPool* compute_pool = nullptr;
    WorkerMetrics* metrics = nullptr;
    const Clock* clock = &Clock::Real();

    uint64_t max_tokens_per_step = 4096;
    absl::Duration step_timeout = absl::Seconds(60);
    // Of all steps together. The bytes are raised, where too low, so that one
    // step of max_tokens_per_step fits in one caller's share.
    uint64_t max_steps_in_flight = 1024;
    uint64_t max_prefetched_bytes = uint64_t{2} << 30;
    // Streams, from their arrival until their answer has left: an answer
    // counts as its streams do. Both are there while it is computed.
    uint64_t max_stream_bytes = uint64_t{2} << 30;
    // A longer chunk is computed in runs: bounds the memory of a run, and how
    // long a cancelled step goes on.
    uint64_t max_tokens_per_run = 256;
  };

  explicit StepEngine(const Options& options);
  ~StepEngine();
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;

  // Before it every Begin is NOT_READY. `source` outlives the engine. Once.
  void SetRowSource(RowSource* source);
  // While it is not OK every Begin is NOT_READY and says why; steps in flight
  // go on. OK at first.
  void SetTables(absl::Status usable);
  // From now on every Begin is DRAINING.
  void Drain();
  bool draining() const;
  // Takes steps: has a row source whose tables can be used, its block is sound
  // and it is not draining.
  bool ready() const;
  // The status that Begin gives a step now, whatever it asks.
  absl::Status CheckTakesSteps() const;
  // NOT_READY for good: the block's health() is `health`.
  absl::Status BlockFailedError(const absl::Status& health) const;

  // Checks and admits a step, which ends at the latest at `deadline` and
  // step_timeout from now. Nothing is fetched before Start.
  // DRAINING, NOT_READY, WRONG_TABLE, OVERLOADED, DEADLINE_EXCEEDED, and the
  // errors of StepRequest::Create: `observer` then hears nothing.
  absl::StatusOr<std::shared_ptr<Step>> Begin(
      StepSpec spec, absl::Time deadline,
      std::shared_ptr<StepObserver> observer);

  // Takes `bytes` of max_stream_bytes. OVERLOADED.
  absl::StatusOr<StreamReservation> ReserveStreams(const CallerId& caller,
                                                   uint64_t bytes);

  // Ends the steps whose deadline has passed, or that of a layer's rows. To be
  // called every few milliseconds; tests call it by hand.
  void ExpireSteps();

  // Looks how the block is: brings the metrics up to date, and returns its
  // health(). To be called every few milliseconds, by one thread.
  absl::Status ObserveBlock();

  size_t steps_in_flight() const;
  // Bytes of packed rows that this step will hold.
  uint64_t PrefetchedBytes(const StepRequest& request) const;
  const Options& options() const { return options_; }

  // ---- for Step ----
  const EngramBlock& block() const { return *options_.block; }
  const Clock& clock() const { return *options_.clock; }
  WorkerMetrics& metrics() const { return *options_.metrics; }
  uint64_t max_tokens_per_run() const { return options_.max_tokens_per_run; }
  // REQUIRES: SetRowSource was called; so it is once a step was admitted.
  RowSource& row_source() const;
  // A step has at most two at a time.
  void RunOnHashThread(const CallerId& caller, absl::AnyInvocable<void()> task);
  // A run of tokens, in its caller's turn. OVERLOADED: too many wait.
  absl::Status RunOnComputePool(const CallerId& caller,
                                absl::AnyInvocable<void()> task);
  // The step holds nothing any more.
  void Ended(const Step& step, const absl::Status& status);

 private:
  friend class StreamReservation;

  absl::Status CheckTakesSteps(const absl::Status& block_health) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseStreams(const CallerId& caller, uint64_t bytes);
  void ShowUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Step>> TryBegin(
      StepSpec spec, absl::Time deadline,
      std::shared_ptr<StepObserver> observer);
  absl::Status Admit(std::shared_ptr<Step> step);

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  RowSource* row_source_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Status tables_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const Step*, std::shared_ptr<Step>> steps_
      ABSL_GUARDED_BY(mutex_);
  FairShare step_share_ ABSL_GUARDED_BY(mutex_);
  FairShare prefetched_share_ ABSL_GUARDED_BY(mutex_);
  FairShare stream_share_ ABSL_GUARDED_BY(mutex_);
  FairPool compute_;
  // A thread of its own: the fetch of a new step does not queue behind the
  // projections of others. Joined before the rest goes.
  ThreadPool hash_thread_;
  FairPool hash_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_STEP_ENGINE_H_

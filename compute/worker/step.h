#ifndef ENGRAM_COMPUTE_WORKER_STEP_H_
#define ENGRAM_COMPUTE_WORKER_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/step_request.h"
#include "compute/worker/stream_reservation.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"

namespace engram {

class StepEngine;

// Streams of tokens [first_token, first_token + n) of a step's layer, where n
// is what they hold. They stay until the step's OnEnd: by `owner`, or because
// whoever passes no owner keeps them and has reserved their bytes.
struct StepChunk {
  uint64_t first_token = 0;
  absl::Span<const std::byte> streams;
  std::shared_ptr<const std::string> owner;
};

// The answer to one chunk.
struct StepChunkResult {
  uint64_t first_token = 0;
  uint64_t token_count = 0;
  uint64_t input_bytes = 0;  // of the chunk's streams
  v1::LayerResult result;
  // Of the chunk's streams: to be kept until the answer has left.
  StreamReservation reserved;
};

// Who wants a step's results. Called from threads of the engine and of the
// row source, of several layers at once; must not block.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void OnResult(StepChunkResult result) = 0;
  // Exactly once, after the last OnResult and when the step uses nothing of
  // the caller's any more. OK: every token of every layer was answered.
  virtual void OnEnd(const absl::Status& status) = 0;
};

// One step in flight: hash and fetch every layer's rows, first layer first;
// compute a chunk of a layer once both its streams and its layer's rows are
// there. Hashing runs on the engine's own thread, computing on its compute
// pool, a bounded run of tokens at a time, each in its caller's turn.
//
//   Begin -> Start -> hash, fetch layer a -> hash, fetch layer b -> ...
//                       AddChunk + rows of its layer -> compute -> OnResult
//   all answered, or the first failure -> fetches dropped, OnEnd
//
// A step that has ended (failed, cancelled, expired) hashes, fetches and
// computes nothing more; a run of tokens being computed is let finish.
//
// Thread safety: all methods may be called concurrently.
class Step : public std::enable_shared_from_this<Step> {
 public:
  // For StepEngine::Begin.
  Step(StepEngine& engine, CallerId caller, StepRequest request,
       absl::Time begun, absl::Time deadline,
       std::shared_ptr<StepObserver> observer);
  ~Step();

  // Starts the fetches. Once.
  void Start();

  // Takes streams; may come before Start. The step ends with INVALID_ARGUMENT
  // (a token of the layer for the second time, tokens the step does not have,
  // no whole number of tokens), UNKNOWN_LAYER or OVERLOADED.
  void AddChunk(LayerId layer, StepChunk chunk);

  // Nobody will add chunks any more: ends the step unless all have come.
  void EndOfChunks();

  // Ends the step with `status`, not OK. False: it had ended before.
  bool Fail(absl::Status status);
  void Cancel() { Fail(absl::CancelledError("the step was cancelled")); }
  // Ends the step with DEADLINE_EXCEEDED if its time is over at `now`, or that
  // of a layer whose rows are not there; says what it waited for.
  void ExpireAt(absl::Time now);

  const CallerId& caller() const { return caller_; }
  const StepRequest& request() const { return request_; }
  absl::Time begun() const { return begun_; }
  absl::Time deadline() const { return deadline_; }
  // Before it nothing can have expired: not later than the deadline.
  absl::Time first_deadline() const { return first_deadline_; }
  // Packed rows of all layers.
  uint64_t prefetched_bytes() const;

 private:
  struct Layer;
  struct PendingChunk;

  void StartFetches();
  void HashLayer(Layer& layer);
  void FetchLayer(Layer& layer);
  void OnRows(Layer& layer, absl::Status status);
  // The rows did not come within the layer's own time; `why` may be empty.
  void FailLate(const Layer& layer, absl::string_view why);

  absl::Status TakeChunk(LayerId layer_id, StepChunk chunk);
  absl::Status MarkReceived(Layer& layer, uint64_t first, uint64_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Layer* FindLayer(LayerId layer_id);

  bool TakeComputeTurn(Layer& layer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleCompute(Layer& layer);
  void ComputeRun(Layer& layer);
  absl::Status RunBlock(Layer& layer, PendingChunk& pending);
  BlockOutputs OutputsOf(PendingChunk& pending, uint64_t count) const;
  void FinishRun(Layer& layer, PendingChunk& pending);

  // Ends the step with DEADLINE_EXCEEDED.
  void Expire();
  // False once the step has ended; past a deadline it ends here.
  bool StillWanted();
  // For messages: the first layer that lacks some, or nothing.
  std::string MissingStreams();
  std::string MissingRows();
  // Work that touches the step's memory stands between these two; the step
  // is torn down when the last has left.
  bool Enter();
  void Leave();
  void Finish();

  StepEngine& engine_;
  const CallerId caller_;
  const StepRequest request_;
  const absl::Time begun_;
  const absl::Time deadline_;
  absl::Time first_deadline_;  // constant once made
  const uint64_t token_bytes_;
  // One for each of request_.layer_indices().
  std::vector<std::unique_ptr<Layer>> layers_;

  Mutex mutex_;
  std::shared_ptr<StepObserver> observer_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t tokens_left_ ABSL_GUARDED_BY(mutex_);  // to answer, of all layers
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_STEP_H_

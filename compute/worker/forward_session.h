#ifndef ENGRAM_COMPUTE_WORKER_FORWARD_SESSION_H_
#define ENGRAM_COMPUTE_WORKER_FORWARD_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "compute/worker/caller_id.h"
#include "compute/worker/step.h"
#include "compute/worker/step_engine.h"
#include "compute/worker/stream_reservation.h"
#include "core/base/mutex.h"
#include "engram/v1/compute.pb.h"

namespace engram {

// Limits of one Forward stream, as GetModel tells them.
struct ForwardLimits {
  uint64_t max_steps_in_flight = 64;
  uint64_t max_prefetched_bytes = uint64_t{512} << 20;
  uint64_t max_chunk_bytes = uint64_t{1} << 20;
  // Streams that were read and not answered, and answers not yet sent: above
  // either, the session asks for no more reads.
  uint64_t max_held_bytes = uint64_t{64} << 20;
  size_t max_queued_replies = 256;

  // These, raised where one step of the engine's limits or one token of its
  // model would not fit.
  static ForwardLimits For(const StepEngine& engine);
};

// What one Forward stream does, without gRPC: requests in, replies out.
//
// Thread safety: all methods may be called concurrently, except that requests
// are handled one at a time and replies taken one at a time.
class ForwardSession : public std::enable_shared_from_this<ForwardSession> {
 public:
  // `wake` is called, on any thread and without locks, whenever a reply may
  // be there, reading may go on, or the session may have become idle.
  // `engine` outlives the session's steps.
  static std::shared_ptr<ForwardSession> Create(StepEngine* engine,
                                                const ForwardLimits& limits,
                                                CallerId caller,
                                                std::function<void()> wake);

  // Errors of one step become its StepEnd. INVALID_ARGUMENT: the whole stream
  // must end with this status (no kind, or the id of a step in flight).
  absl::Status Handle(v1::ForwardRequest request);
  // Nothing more will be handled: steps that lack streams end.
  void EndOfRequests();
  // The caller is gone: ends every step, drops every reply.
  void Cancel();

  // Takes the next reply; false if there is none.
  bool TakeReply(v1::ForwardResponse* reply);
  // The reply taken last has left.
  void ReplySent();

  // Too much is held: read on only when woken and this is false.
  bool wants_pause() const;
  // No step in flight and no reply left to take.
  bool idle() const;

 private:
  class Observer;
  struct StepEntry {
    std::shared_ptr<Step> step;  // null while it is being admitted
    uint64_t held_bytes = 0;     // streams not yet answered
    uint64_t prefetched_bytes = 0;
  };
  struct Reply {
    v1::ForwardResponse message;
    uint64_t bytes = 0;
    StreamReservation reserved;
  };

  ForwardSession(StepEngine* engine, const ForwardLimits& limits,
                 CallerId caller, std::function<void()> wake)
      : engine_(engine),
        limits_(limits),
        caller_(std::move(caller)),
        wake_(std::move(wake)) {}

  absl::Status Begin(uint64_t step_id, v1::StepBegin begin);
  void StartStep(uint64_t step_id, std::shared_ptr<Step> step);
  void TakeStreams(uint64_t step_id, v1::StepLayer layer);
  void CancelStep(uint64_t step_id);
  std::shared_ptr<Step> Find(uint64_t step_id) const;
  std::vector<std::shared_ptr<Step>> Steps() const;

  void OnResult(uint64_t step_id, StepChunkResult result);
  void OnEnd(uint64_t step_id, const absl::Status& status);
  void PushEnd(uint64_t step_id, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RememberEnded(uint64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StepEngine* const engine_;
  const ForwardLimits limits_;
  const CallerId caller_;
  const std::function<void()> wake_;

  mutable Mutex mutex_;
  std::unordered_map<uint64_t, StepEntry> steps_ ABSL_GUARDED_BY(mutex_);
  // The last ids that ended, so that streams sent before their caller knew
  // are told from streams of a step that never was. An id that is used again
  // is there once for each of its ends.
  std::deque<uint64_t> ended_order_ ABSL_GUARDED_BY(mutex_);
  std::unordered_multiset<uint64_t> ended_ ABSL_GUARDED_BY(mutex_);
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mutex_);
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t prefetched_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  StreamReservation sending_reserved_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_FORWARD_SESSION_H_

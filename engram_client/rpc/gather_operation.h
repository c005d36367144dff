#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/plan/gather_plan.h"
#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/routing_table.h"
#include "engram_client/rpc/gather_queue.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/table_client.h"

namespace engram {

class GatherOperation;

// What all gathers of a client share. Outlives every gather until its
// on_finished has been called.
struct GatherEnvironment {
  const TableInfo* table = nullptr;
  RoutingTable* routing = nullptr;
  RoutePolicy* policy = nullptr;
  TimerQueue* timers = nullptr;
  std::vector<TableTransport*> transports;  // by server index
  uint64_t max_rows_per_call = 0;
  bool want_crc32c = false;
  // Why servers are not connected, for messages; empty if all are.
  std::function<std::string()> server_problems;
  // The end of a gather that was not refused is about to be told: it no longer
  // counts as in flight.
  std::function<void()> on_ending;
  // The gather has told its end and uses the environment no more.
  std::function<void(GatherOperation*)> on_finished;
};

// One gather from its plan to its end.
//
// Segments (rows of one partition) wait in the queue until a ready server has
// them, then stand in calls: in line at the server, then in flight. A failed
// call gives its segments back with a note of what failed; they are routed
// again.
// The end (all rows here, an error, the deadline, Cancel) is decided once;
// then no reply starts to write to the caller's buffers and no call starts,
// and when the last thread that is at it has left, the end is told: `done`,
// Wait.
//
// Thread safety: all methods may be called concurrently. No lock is held over
// a call, a scatter or a callback.
class GatherOperation final
    : public std::enable_shared_from_this<GatherOperation> {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // A gather that CheckGather allowed.
  GatherOperation(const GatherEnvironment& environment,
                  absl::Span<const LayerGather> layers, absl::Time deadline,
                  Done done);
  // One that was refused for `why`: Start only tells so.
  GatherOperation(const GatherEnvironment& environment, absl::Status why,
                  Done done);

  void Start();
  void Cancel();
  // Partitions moved: what had no server may have one now.
  void OnRoutingChange();

  // Until the end is decided and nothing writes to the buffers.
  absl::Status Wait() const;
  bool ended() const;
  // As Wait, and `done` has returned. On the thread that runs `done`, Wait.
  void WaitUntilTold();
  GatherStats stats() const;

 private:
  class Call;
  using CallPtr = std::shared_ptr<Call>;

  // What is left to do for the end, without the lock.
  struct Ending {
    bool decided = false;  // by this call
    bool tell = false;     // nobody is busy
    std::vector<std::shared_ptr<TransportCall>> cancel;
  };

  // Routes what may be routed, starts what may be started. The caller finishes
  // the end that may have been decided meanwhile.
  [[nodiscard]] Ending Dispatch();
  std::vector<CallPtr> TakeCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OrderRows(absl::Span<const CallPtr> calls) const;
  void SetWakeTimer(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCall(const CallPtr& call);
  void OnCallDone(const CallPtr& call, const absl::Status& status);
  void TakeBack(Call& call, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Around everything that uses buffers or environment without the lock. The
  // end is told when nobody is busy any more; false once it is decided.
  bool Enter();
  [[nodiscard]] Ending Leave();

  void OnDeadline();
  Ending DecideEnd(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // FinishEnd: on a thread of the client. Else the timer thread tells.
  void FinishEnd(const Ending& ending);
  void FinishEndElsewhere(const Ending& ending);
  void Tell();
  // Whether the caller is now the one to tell what the timer thread was to.
  bool TakeQueuedTelling() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status DeadlineStatus(const std::string& problems) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CallStatus(const Call& call, const absl::Status& status) const;

  const GatherEnvironment& environment_;
  const GatherPlan plan_;
  const std::vector<LayerId> layer_ids_;
  const std::vector<absl::Span<std::byte>> outs_;
  const size_t row_bytes_;
  const absl::Time deadline_;
  const absl::Status refused_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  GatherQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> servers_asked_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<CallPtr> calls_ ABSL_GUARDED_BY(mutex_);  // in flight
  uint64_t rows_left_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);  // that was tried again
  GatherStats stats_ ABSL_GUARDED_BY(mutex_);
  TimerQueue::Timer deadline_timer_ ABSL_GUARDED_BY(mutex_);
  TimerQueue::Timer wake_timer_ ABSL_GUARDED_BY(mutex_);

  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool decided_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // decided, and nobody busy
  bool telling_queued_ ABSL_GUARDED_BY(mutex_) = false;  // for timer thread
  bool told_ ABSL_GUARDED_BY(mutex_) = false;            // done has returned
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  Done done_ ABSL_GUARDED_BY(mutex_);
  std::thread::id telling_thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_

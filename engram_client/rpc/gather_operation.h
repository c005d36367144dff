#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/plan/gather_plan.h"
#include "engram_client/rpc/calls_in_flight.h"
#include "engram_client/rpc/gate.h"
#include "engram_client/rpc/gather_call.h"
#include "engram_client/rpc/gather_end.h"
#include "engram_client/rpc/gather_environment.h"
#include "engram_client/rpc/gather_queue.h"
#include "engram_client/rpc/gather_status.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/table_client.h"

namespace engram {

// One gather from its plan to its end.
//
// Rows that the client's cache has are copied at once, and asked of nobody.
// Segments (the others of one partition) wait in the queue until a ready server
// has them, then stand in calls: in line at the server, then in flight. A
// failed call gives its segments back with a note of what failed; they are
// routed again. A call that takes long is hedged (CallsInFlight). The end (all
// rows here, an error, the deadline, Cancel) is decided once; then no reply
// starts to write to the caller's buffers and no call starts, and when the last
// thread that is at it has left, the end is told: `done`, Wait.
//
// Thread safety: all methods may be called concurrently. No lock is held over
// a call, a scatter or a callback.
class GatherOperation final
    : public std::enable_shared_from_this<GatherOperation>,
      private GatherCall::Host {
 public:
  using Done = GatherEnd::Done;

  // A gather that CheckGather allowed.
  GatherOperation(const GatherEnvironment& environment,
                  absl::Span<const LayerGather> layers, absl::Time deadline,
                  Done done);
  // One that was refused for `why`: Start only tells so.
  GatherOperation(const GatherEnvironment& environment, absl::Status why,
                  Done done);

  void Start();
  void Cancel();
  // Partitions moved: what had no server may have one now, or another.
  void OnRoutingChange();

  // Until the end is decided and nothing writes to the buffers.
  absl::Status Wait() const { return end_.Wait(); }
  bool ended() const { return end_.ended(); }
  // As Wait, and `done` has returned. On the thread that runs `done`, Wait.
  void WaitUntilTold() { end_.WaitUntilTold(); }
  GatherStats stats() const;

 private:
  // What is left to do without the lock, in this order.
  struct Todo {
    std::vector<CallMonitor::EndedCall> ended;
    std::vector<std::shared_ptr<TransportCall>> cancel;
    std::vector<GatherCallPtr> place;  // whose rows have arrived
    bool dispatch = false;
    bool decided = false;  // the end is, by this
    bool tell = false;     // the end; nobody is at it any more
  };

  // GatherCall::Host; the buffers are entered with the gate.
  void OnDone(const GatherCallPtr& call, const absl::Status& status) override;
  bool EnterBuffers() override { return gate_.Enter(); }
  void LeaveBuffers() override { Finish(Leave()); }
  void OnShut(GatherCall& call) override;

  // Routes what may be routed, starts what may be started.
  [[nodiscard]] Todo Dispatch();
  void TakeCalls(absl::Time now, std::vector<GatherCallPtr>& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GatherCallPtr MakeCall(CallKind kind, PlannedCall planned, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OrderRows(absl::Span<const GatherCallPtr> calls) const;
  void StartCall(const GatherCallPtr& call);
  // For a server that is gone. It says so on the timer thread, as a transport
  // would on one of its own.
  void FailLater(const GatherCallPtr& call);

  // Appends hedges for calls that take long, to `overdue` those of them that
  // could not be hedged, once each.
  void TakeHedges(const RoutingSnapshot& snapshot, absl::Time now,
                  std::vector<GatherCallPtr>& calls,
                  std::vector<GatherCallPtr>& overdue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After `wait`, and while there is time for its answer.
  absl::Time HedgeTime(absl::Duration wait, absl::Time now) const;
  // For both, another try comes later.
  void OnHedgeFailed(const GatherCall& hedge, GatherCall& primary,
                     const CallFailure& failure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<GatherCallPtr> HedgesFor(const GatherCall& slow,
                                       const RoutingSnapshot& snapshot,
                                       absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnAnswered(const GatherCallPtr& call, absl::Time now, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CallOutcome OutcomeOfFailed(const GatherCall& call,
                              const absl::Status& status, absl::Time now) const;
  void OnFailed(const GatherCallPtr& call, const absl::Status& status,
                absl::Time now, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A call lost against its hedges.
  void OnBeaten(CallsInFlight::Outcome outcome, absl::Time now, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be asked for again. False: that was tried often enough.
  bool TakeBack(std::vector<GatherSegment> segments, CallFailure failure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(GatherCall& call, CallOutcome outcome, absl::Time now, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountHedges(HedgeEnd end, size_t hedges);
  void CountRows(const GatherCall& call, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // REQUIRES: the gate is entered.
  void PlaceRows(absl::Span<const GatherCallPtr> calls);

  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAlarm();
  void OnDeadline();
  void DecideEnd(absl::Status status, Todo& todo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Todo Leave();
  // Does it; on a thread of the client. Elsewhere, the timer thread tells.
  void Finish(Todo todo);
  void FinishElsewhere(const Todo& todo);
  void ReportAndCancel(const Todo& todo);
  absl::Status Result() const;
  GatherNames Names() const {
    return {environment_.table->version, layer_ids_};
  }

  const GatherEnvironment& environment_;
  const std::shared_ptr<CallMonitor> monitor_;
  const std::shared_ptr<GatherCache> cache_;  // null: none
  GatherPlan plan_;                           // constant once constructed
  const std::vector<LayerId> layer_ids_;
  const std::vector<absl::Span<std::byte>> outs_;
  const size_t row_bytes_;
  const absl::Time deadline_;
  const absl::Time steady_deadline_;
  const absl::Status refused_;

  // Around everything that uses buffers or environment without the lock.
  // Closed when the end is decided; whoever finds it empty then tells the end.
  Gate gate_;
  GatherEnd end_;

  mutable Mutex mutex_;
  GatherQueue queue_ ABSL_GUARDED_BY(mutex_);
  CallsInFlight in_flight_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> servers_asked_ ABSL_GUARDED_BY(mutex_);
  uint64_t rows_left_ ABSL_GUARDED_BY(mutex_) = 0;
  FailedTries failed_ ABSL_GUARDED_BY(mutex_);
  GatherStats stats_ ABSL_GUARDED_BY(mutex_);
  // For what waits in the queue.
  absl::Time route_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // The one timer: for the deadline, hedges and what waits. May come early.
  TimerQueue::Timer alarm_ ABSL_GUARDED_BY(mutex_);
  bool may_hedge_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool decided_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_OPERATION_H_

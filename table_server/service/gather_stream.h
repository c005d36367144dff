#ifndef ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"
#include "engram/v1/table.pb.h"
#include "table_server/service/call_source.h"
#include "table_server/service/gather_task.h"
#include "table_server/service/live_set.h"

namespace engram {

// One GatherStream on a completion queue: many gathers in flight over one call.
//
// At any time there is at most one read, one write and one pump. The pump
// gathers one piece and comes again, so that the gathers take turns, and so do
// streams; small gathers go first, though not before a piece that waits for its
// thread already. A gather whose rows have to be fetched has no turn until they
// are there, and then the next one. While the queue of pieces is full there is
// no pump, and the end of a write starts it again; when a caller reads nothing
// for long, nothing more is read from it either.
//
// Whatever becomes of a gather, and of the stream, both live until the rows
// that are being fetched for them are there.
class GatherStream final : public Stoppable,
                           public std::enable_shared_from_this<GatherStream> {
 public:
  // Asks gRPC for the next stream of `source`; that one asks for the next.
  static void Await(const CallSource& source);

  // Gathers in flight end, then the stream does, with DRAINING.
  void Stop() override;
  // Gathers past their deadline end, also when the caller reads nothing. After
  // limits.stall of that the stream does: a gather that is not sent to its end
  // keeps partitions that the server wants to free.
  void Expire() override;

 private:
  struct Call {
    uint64_t id = 0;
    std::unique_ptr<GatherTask> task;
  };
  using CallPtr = std::shared_ptr<Call>;

  struct Message {
    grpc::ByteBuffer bytes;
    // With its last message: what it holds is admitted until that is sent.
    CallPtr ended_call;
  };

  // A gather for which nobody waits any more.
  struct Expired {
    uint64_t id = 0;
    CallPtr call;
    absl::Status status;
  };

  struct Action {
    bool read = false;
    bool write = false;
    bool pump = false;
    bool finish = false;

    bool any() const { return read || write || pump || finish; }
  };

  explicit GatherStream(const CallSource& source);

  void OnArrived(bool ok);
  void Begin();
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnCallEnded(bool ok);

  // Starts whatever may be started, until there is nothing.
  void Advance();
  void Start(const Action& action);
  Action Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last event releases the stream: nothing may touch it after.
  void EventEnded();

  void Handle(v1::GatherStreamRequest request);
  void HandleGather(v1::GatherStreamRequest request);
  void HandleCancel(uint64_t call_id);
  absl::StatusOr<CallPtr> Admit(v1::GatherStreamRequest& request);

  void StartPump();
  void Pump();
  CallPtr TakeTurn();
  std::deque<CallPtr>* NextTurns() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<CallPtr>& TurnsOf(const Call& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveTurn(CallPtr call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutBack(CallPtr call, absl::StatusOr<GatherTask::Piece> piece);
  void AwaitRows(CallPtr call);
  void OnRows(const Call* key);
  // It is in flight no more, though rows may be on their way for it.
  void EndCall(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: it was cancelled or dropped; its id may even be in use again.
  bool IsInFlight(const CallPtr& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeExpired(std::vector<Expired>& expired)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndExpired(std::vector<Expired> expired);
  bool IsStalled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A message that ends no admitted gather.
  void Say(grpc::ByteBuffer message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The stream ends with `status`; gathers in flight are dropped.
  void Abandon(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallSource source_;
  ServiceContext& service_;
  std::shared_ptr<GatherStream> self_;  // until the last event
  MemberEvent<GatherStream, &GatherStream::OnArrived> arrived_{this};
  MemberEvent<GatherStream, &GatherStream::OnRead> read_{this};
  MemberEvent<GatherStream, &GatherStream::OnWritten> written_{this};
  MemberEvent<GatherStream, &GatherStream::OnFinished> finished_event_{this};
  MemberEvent<GatherStream, &GatherStream::OnCallEnded> call_ended_{this};
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{
      &context_};

  // Owned by the read and the write under way.
  grpc::ByteBuffer incoming_;
  Message writing_;

  Mutex mutex_;
  std::map<uint64_t, CallPtr> calls_ ABSL_GUARDED_BY(mutex_);  // in flight
  std::deque<CallPtr> small_turns_ ABSL_GUARDED_BY(mutex_);
  std::deque<CallPtr> large_turns_ ABSL_GUARDED_BY(mutex_);
  // Rows are being fetched for them; also those that are in flight no more.
  std::map<const Call*, CallPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t large_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // of waiting_
  // Of waiting_ those that are in flight no more: they count towards the limit
  // until their memory is free.
  uint64_t left_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Message> outgoing_ ABSL_GUARDED_BY(mutex_);
  // Events, pumps and fetched rows to come, and threads that are about to start
  // one: the stream lives as long.
  int busy_ ABSL_GUARDED_BY(mutex_) = 2;  // arrived_ and call_ended_
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool handling_ ABSL_GUARDED_BY(mutex_) = false;  // what was read
  // Threads between the decision to read and the read: Finish waits for them.
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int expiring_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that drop gathers
  bool writing_now_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time writing_since_ ABSL_GUARDED_BY(mutex_);
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_reads_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_

#ifndef ENGRAM_ENGRAM_CLIENT_RPC_LANE_STREAM_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_LANE_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"
#include "core/wire/piece_reader.h"
#include "engram_client/rpc/lane_call.h"
#include "engram_client/rpc/live_count.h"

namespace engram {

// One GatherStream from its first message to its end. It is opened by Open or
// the first gather; once it is closed (broken, ended by the server, cancelled)
// it takes no more, and its gathers end with its status.
//
// At most one write and one read are under way. A thread that has read a
// message finds the place of its rows, starts the next read and only then
// copies: meanwhile another thread of the loop may do the same.
//
// Thread safety: all methods may be called concurrently. Each `done` runs on a
// thread of the loop, without a lock.
class LaneStream final : public std::enable_shared_from_this<LaneStream> {
 public:
  // Gathers in flight, where the server does not allow fewer. Those beyond it
  // wait here.
  static constexpr size_t kMaxInFlight = 32;
  // Gathers beyond it are OVERLOADED.
  static constexpr size_t kMaxWaiting = 16384;
  // Gathers that were cancelled and of which the server has not said yet that
  // it knows. Beyond that it hangs: the stream is broken off, so that there is
  // an end to what waits for the server when it goes on.
  static constexpr size_t kMaxAbandoned = 4 * kMaxInFlight;

  // `token` is dropped when all of the stream is gone; the others must outlive
  // it.
  LaneStream(LiveCount::Token token,
             const std::shared_ptr<grpc::Channel>& channel, QueueLoop& loop,
             const std::atomic<size_t>& max_in_flight);
  LaneStream(const LaneStream&) = delete;
  LaneStream& operator=(const LaneStream&) = delete;

  // False for both: it is closed, and nothing has happened.
  bool Add(const std::shared_ptr<LaneCall>& call);
  // Connects, so that the first gather need not; not more than once.
  bool Open();
  // The gather ends with CANCELLED, soon, unless it has ended.
  void Cancel(const std::shared_ptr<LaneCall>& call);
  // All gathers end with CANCELLED, soon.
  void Close();

 private:
  using CallPtr = std::shared_ptr<LaneCall>;

  // What one message means.
  struct Step {
    absl::Status broken;  // the stream is to be broken off
    CallPtr copy;         // whose rows are to be copied
    uint64_t offset_bytes = 0;
    CallPtr tell;  // whose end is to be told
  };

  // Writes the next message, if there is one and it may be written.
  void Advance();
  bool TakeMessage(grpc::ByteBuffer* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnWrite(bool ok);
  void OnRead(bool ok);
  void OnFinish(bool ok);
  void OnAlarm(bool ok);

  void Receive(const PieceMessage& message);
  // `error`: what an error message says.
  Step Decide(const PieceMessage& message, absl::Status error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakePiece(const CallPtr& call, const PieceMessage& message, Step& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadNext();
  void EndCopy(const CallPtr& call, absl::Status status);
  // Ends the stream for a fault of the server's.
  void Break(absl::Status why);
  void Finish();

  // Decides the end of a call that has not ended. Returns whether it can be
  // told; else who still copies tells it.
  bool End(const CallPtr& call, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // End, and the server hears of it.
  bool Abandon(const CallPtr& call, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The caller then cancels the stream.
  bool BecameStuck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waiting and in flight.
  std::vector<CallPtr> OpenCalls() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of all; returns those that can be told.
  std::vector<CallPtr> EndAll(const absl::Status& in_flight,
                              const absl::Status& waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Tell(absl::Span<const CallPtr> calls);
  void TellLater(std::vector<CallPtr> calls);

  void WatchDeadline(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Around each operation on the queue. What EndOperation returns keeps the
  // stream until it goes.
  void BeginOperation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::shared_ptr<LaneStream> EndOperation()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LiveCount::Token token_;  // the last to go
  QueueLoop& loop_;
  const std::atomic<size_t>& max_in_flight_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  MemberEvent<LaneStream, &LaneStream::OnWrite> write_event_{this};
  MemberEvent<LaneStream, &LaneStream::OnRead> read_event_{this};
  MemberEvent<LaneStream, &LaneStream::OnFinish> finish_event_{this};
  MemberEvent<LaneStream, &LaneStream::OnAlarm> alarm_event_{this};
  grpc::ByteBuffer incoming_;  // of the read under way
  grpc::Status grpc_status_;   // of Finish

  Mutex mutex_;
  std::deque<CallPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<CallPtr> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> cancels_ ABSL_GUARDED_BY(mutex_);     // to be sent
  std::vector<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);  // not ended there
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_broken_ ABSL_GUARDED_BY(mutex_);
  // Looks at all deadlines, not before the earliest.
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  absl::Time alarm_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  size_t operations_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<LaneStream> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_LANE_STREAM_H_

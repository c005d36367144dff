#ifndef ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram/v1/table.pb.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_context.h"
#include "table_server/service/stream_call.h"

namespace engram {

// One GatherStream: many gathers in flight over one call.
//
// At any time there is at most one read, one write and one pump. The pump, a
// task of the worker pool, gathers one piece and is queued again: the gathers
// take turns, and so do streams, so that a small gather is not held up by a
// large one. While the queue of pieces is full there is no pump, and the end of
// a write starts it again; when a caller reads nothing for long, nothing more
// is read from it either.
class GatherStream final
    : public grpc::ServerBidiReactor<v1::GatherStreamRequest,
                                     v1::GatherStreamResponse>,
      public Stoppable,
      public std::enable_shared_from_this<GatherStream> {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::GatherStreamRequest,
                                          v1::GatherStreamResponse>;

  static Reactor* Start(ServiceContext& service,
                        const grpc::CallbackServerContext& context);

  // Gathers in flight end, then the stream does, with DRAINING.
  void Stop() override;
  // Gathers past their deadline end, also when the caller reads nothing.
  void Expire() override { Advance(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Action {
    bool read = false;
    bool write = false;
    bool pump = false;
    bool finish = false;
  };

  GatherStream(ServiceContext& service, absl::Time deadline)
      : service_(service), deadline_(deadline) {}

  // Drops what is past its deadline, then starts whatever may be started.
  void Advance();
  void DropExpired();
  Action Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Handle(v1::GatherStreamRequest request);
  void HandleGather(v1::GatherStreamRequest request);
  void HandleCancel(uint64_t call_id);
  absl::StatusOr<std::shared_ptr<StreamCall>> Admit(
      v1::GatherStreamRequest& request);

  void Pump();
  std::shared_ptr<StreamCall> TakeTurn();
  void PutBack(std::shared_ptr<StreamCall> call,
               v1::GatherStreamResponse response);

  // The stream ends with `status`; gathers in flight are dropped.
  void Abandon(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServiceContext& service_;
  const absl::Time deadline_;
  std::shared_ptr<GatherStream> self_;  // until OnDone

  // Owned by the read and the write under way.
  v1::GatherStreamRequest incoming_;
  v1::GatherStreamResponse writing_response_;

  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<StreamCall>> calls_
      ABSL_GUARDED_BY(mutex_);  // in flight
  std::deque<std::shared_ptr<StreamCall>> turns_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::GatherStreamResponse> outgoing_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // Threads between the decision to read and StartRead: Finish waits for them.
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_reads_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_GATHER_STREAM_H_

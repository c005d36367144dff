#ifndef ENGRAM_TABLE_SERVER_PEERS_FETCH_CALL_H_
#define ENGRAM_TABLE_SERVER_PEERS_FETCH_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"
#include "engram/v1/table.grpc.pb.h"
#include "table_server/peers/live_calls.h"

namespace engram {

// One FetchPartition: received on a queue, taken by a thread that waits. While
// it works on a piece, the next one is received, but no more than that: a slow
// taker slows the peer down.
//
// Thread safety: Next and Abandon are for one thread, the taker.
class FetchCall final : public LiveCall {
 public:
  FetchCall(std::shared_ptr<LiveCalls> calls, absl::Time deadline);

  void Start(v1::TableService::Stub& stub, QueueLoop& loop,
             const v1::FetchPartitionRequest& request);

  enum class Event { kRows, kEnded, kNothing };
  // Waits for at most `timeout`. kRows: `rows` has the next ones.
  Event Next(std::string& rows, absl::Duration timeout);
  // How it ended. REQUIRES: kEnded was returned.
  absl::Status status() const;

  // The taker wants no more. The call goes on by itself to its end.
  void Abandon();

  void Cancel() override { context_.TryCancel(); }

 private:
  void OnStarted(bool ok) { ReadOrFinish(ok); }
  void OnRead(bool ok);
  void OnFinished(bool ok);
  void ReadOrFinish(bool read);

  const std::shared_ptr<LiveCalls> calls_;
  grpc::ClientContext context_;
  grpc::Status grpc_status_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::FetchPartitionResponse>> reader_;
  MemberEvent<FetchCall, &FetchCall::OnStarted> started_event_{this};
  MemberEvent<FetchCall, &FetchCall::OnRead> read_event_{this};
  MemberEvent<FetchCall, &FetchCall::OnFinished> finished_event_{this};
  v1::FetchPartitionResponse incoming_;  // the taker's when `arrived_`

  mutable Mutex mutex_;
  CondVar changed_;
  bool arrived_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_FETCH_CALL_H_

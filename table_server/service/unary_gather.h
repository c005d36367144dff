#ifndef ENGRAM_TABLE_SERVER_SERVICE_UNARY_GATHER_H_
#define ENGRAM_TABLE_SERVER_SERVICE_UNARY_GATHER_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/rpc/queue_loop.h"
#include "table_server/service/call_source.h"
#include "table_server/service/gather_task.h"
#include "table_server/service/reply_buffers.h"

namespace engram {

// One unary Gather on a completion queue. Rows are gathered piece by piece, so
// that others get their turn, and sent as one message made of the pieces.
// Deletes itself when the call is done.
class UnaryGather final {
 public:
  // Asks gRPC for the next call of `source`; that one asks for the next.
  static void Await(const CallSource& source);

 private:
  explicit UnaryGather(const CallSource& source);

  void OnArrived(bool ok);
  void OnFinished(bool ok);
  // The caller is gone, or all is over.
  void OnCallEnded(bool ok);

  absl::Status Begin();
  // Gathers one piece and goes on as may be.
  void RunPiece();
  void AwaitRows();
  void Continue();
  void FinishWithRows();
  void Finish(const absl::Status& status);
  void EventEnded();

  const CallSource source_;
  ServiceContext& service_;
  MemberEvent<UnaryGather, &UnaryGather::OnArrived> arrived_{this};
  MemberEvent<UnaryGather, &UnaryGather::OnFinished> finished_{this};
  MemberEvent<UnaryGather, &UnaryGather::OnCallEnded> call_ended_{this};
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};

  std::atomic<int> events_left_{2};  // finished_ and call_ended_
  std::atomic<bool> cancelled_{false};
  // Of whoever runs the call's next step: there is one at a time.
  std::optional<GatherTask> task_;
  std::vector<ReplyBuffer> pieces_;
  absl::StatusCode code_ = absl::StatusCode::kOk;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_UNARY_GATHER_H_

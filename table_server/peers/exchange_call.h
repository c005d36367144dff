#ifndef ENGRAM_TABLE_SERVER_PEERS_EXCHANGE_CALL_H_
#define ENGRAM_TABLE_SERVER_PEERS_EXCHANGE_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/rpc/queue_loop.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "table_server/peers/live_calls.h"
#include "table_server/peers/peer_calls.h"

namespace engram {

// One Exchange on a queue. Lives in its LiveCalls until it has told its end.
class ExchangeCall final : public LiveCall {
 public:
  ExchangeCall(std::shared_ptr<LiveCalls> calls, absl::Time deadline,
               PeerCalls::ExchangeDone done)
      : calls_(std::move(calls)), done_(std::move(done)) {
    context_.set_deadline(absl::ToChronoTime(deadline));
  }

  void Start(v1::TableService::Stub& stub, QueueLoop& loop,
             const v1::ExchangeRequest& request) {
    reader_ = stub.PrepareAsyncExchange(&context_, request, &loop.queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, ended_.tag());
  }

  // In place of Start.
  void Refuse(const absl::Status& status) { done_(status); }

  void Cancel() override { context_.TryCancel(); }

 private:
  void OnEnded(bool /*ok*/) {
    {
      // Gone, with all that it refers to, before the call counts as ended.
      PeerCalls::ExchangeDone done = std::move(done_);
      if (status_.ok()) {
        done(std::move(response_));
      } else {
        done(FromGrpcStatus(status_));
      }
    }
    const std::shared_ptr<LiveCalls> calls = calls_;
    calls->Remove(this);
  }

  const std::shared_ptr<LiveCalls> calls_;
  PeerCalls::ExchangeDone done_;
  grpc::ClientContext context_;
  v1::ExchangeResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ExchangeResponse>>
      reader_;
  MemberEvent<ExchangeCall, &ExchangeCall::OnEnded> ended_{this};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_EXCHANGE_CALL_H_

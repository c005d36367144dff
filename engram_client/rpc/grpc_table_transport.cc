#include "engram_client/rpc/grpc_table_transport.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "core/wire/gather_size.h"
#include "engram/v1/table.grpc.pb.h"
#include "engram_client/rpc/call_set.h"
#include "engram_client/rpc/gather_lane.h"

namespace engram {
namespace {

// Owned by the call set from before it starts until its end.
class TableCall final : public TransportCall {
 public:
  TableCall(CallSet* calls, absl::Time deadline, TableTransport::TableDone done)
      : calls_(calls), done_(std::move(done)) {
    if (deadline == absl::InfiniteFuture()) return;
    context_.set_deadline(absl::ToChronoTime(deadline));
  }

  void Start(v1::TableService::Stub& stub, QueueLoop& loop) {
    reader_ = stub.PrepareAsyncGetTable(&context_, v1::GetTableRequest(),
                                        &loop.queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, done_event_.tag());
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  void OnDone(bool /*ok*/) {
    if (status_.ok()) {
      done_(std::move(response_));
    } else {
      done_(FromGrpcStatus(status_));
    }
    calls_->Remove(this);
  }

  CallSet* const calls_;
  TableTransport::TableDone done_;
  grpc::ClientContext context_;
  v1::GetTableResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::GetTableResponse>>
      reader_;
  MemberEvent<TableCall, &TableCall::OnDone> done_event_{this};
};

// As TableCall.
class WatchCall final : public TransportCall {
 public:
  WatchCall(CallSet* calls, TableTransport::WatchEvent on_message,
            TableTransport::StatusDone done)
      : calls_(calls),
        on_message_(std::move(on_message)),
        done_(std::move(done)) {}

  void Start(v1::TableService::Stub& stub, QueueLoop& loop) {
    reader_ = stub.PrepareAsyncWatchPartitions(
        &context_, v1::WatchPartitionsRequest(), &loop.queue());
    reader_->StartCall(started_event_.tag());
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  void OnStarted(bool ok) { ReadOrFinish(ok); }

  void OnRead(bool ok) {
    if (ok) on_message_(message_);
    ReadOrFinish(ok);
  }

  void ReadOrFinish(bool ok) {
    if (ok) {
      reader_->Read(&message_, read_event_.tag());
    } else {
      reader_->Finish(&status_, finished_event_.tag());
    }
  }

  void OnFinished(bool /*ok*/) {
    done_(FromGrpcStatus(status_));
    calls_->Remove(this);
  }

  CallSet* const calls_;
  const TableTransport::WatchEvent on_message_;
  TableTransport::StatusDone done_;
  grpc::ClientContext context_;
  v1::WatchPartitionsResponse message_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::WatchPartitionsResponse>> reader_;
  MemberEvent<WatchCall, &WatchCall::OnStarted> started_event_{this};
  MemberEvent<WatchCall, &WatchCall::OnRead> read_event_{this};
  MemberEvent<WatchCall, &WatchCall::OnFinished> finished_event_{this};
};

class GrpcTableTransport final : public TableTransport {
 public:
  GrpcTableTransport(const std::string& address,
                     std::shared_ptr<ClientLoops> loops)
      : loops_(std::move(loops)),
        loop_(loops_->Next()),
        channel_(MakeChannel(address)),
        stub_(v1::TableService::NewStub(channel_)) {
    small_.push_back(std::make_unique<GatherLane>(channel_, loop_));
    AddLanes(address, kSmallLanes, small_);
    AddLanes(address, kBulkLanes, bulk_);
  }

  ~GrpcTableTransport() override { calls_.CancelAllAndWait(); }

  std::shared_ptr<TransportCall> GetTable(absl::Time deadline,
                                          TableDone done) override {
    // The caller has its own backoff; the channel's would come on top.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    return Start(std::make_shared<TableCall>(
        &calls_, deadline,
        [this, done = std::move(done)](
            absl::StatusOr<v1::GetTableResponse> table) mutable {
          if (table.ok()) LimitInFlight(*table);
          done(std::move(table));
        }));
  }

  std::shared_ptr<TransportCall> WatchPartitions(WatchEvent on_message,
                                                 StatusDone done) override {
    return Start(std::make_shared<WatchCall>(&calls_, std::move(on_message),
                                             std::move(done)));
  }

  void WarmUp() override {
    for (const Lanes* lanes : {&small_, &bulk_}) {
      for (const auto& lane : *lanes) lane->WarmUp();
    }
  }

  std::shared_ptr<TransportCall> Gather(const GatherRequest& request,
                                        std::shared_ptr<RowSink> sink,
                                        StatusDone done) override {
    const Lanes& lanes =
        std::max(request.reply_bytes, request.gather_bytes) <= kSmallGatherBytes
            ? small_
            : bulk_;
    return LeastBusy(lanes).Gather(request, std::move(sink), std::move(done));
  }

 private:
  using Lanes = std::vector<std::unique_ptr<GatherLane>>;

  template <typename Call>
  std::shared_ptr<TransportCall> Start(std::shared_ptr<Call> owned) {
    Call* const call = owned.get();
    auto handle = calls_.Add(std::move(owned));
    call->Start(*stub_, loop_);
    return handle;
  }

  // Fills up to `count` lanes.
  void AddLanes(const std::string& address, size_t count, Lanes& lanes) {
    while (lanes.size() < count) {
      lanes.push_back(
          std::make_unique<GatherLane>(MakeChannel(address), loops_->Next()));
    }
  }

  // Among equals in turn: a lane that fails at once is always idle.
  GatherLane& LeastBusy(const Lanes& lanes) {
    const size_t first = turn_.fetch_add(1, std::memory_order_relaxed);
    GatherLane* least = nullptr;
    for (size_t i = 0; i < lanes.size(); ++i) {
      GatherLane* const lane = lanes[(first + i) % lanes.size()].get();
      if (least == nullptr ||
          lane->outstanding_bytes() < least->outstanding_bytes()) {
        least = lane;
      }
    }
    return *least;
  }

  void LimitInFlight(const v1::GetTableResponse& table) {
    const uint64_t limit = table.max_gathers_in_flight_per_stream();
    if (limit == 0) return;
    for (const Lanes* lanes : {&small_, &bulk_}) {
      for (const auto& lane : *lanes) lane->LimitInFlight(limit);
    }
  }

  const std::shared_ptr<ClientLoops> loops_;
  QueueLoop& loop_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::TableService::Stub> stub_;
  CallSet calls_;
  std::atomic<size_t> turn_{0};
  Lanes small_;
  Lanes bulk_;
};

}  // namespace

std::unique_ptr<TableTransport> MakeGrpcTableTransport(
    const std::string& address, std::shared_ptr<ClientLoops> loops) {
  return std::make_unique<GrpcTableTransport>(address, std::move(loops));
}

}  // namespace engram

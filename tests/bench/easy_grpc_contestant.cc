// The client of the easy gRPC version: the callback API as its examples show
// it, one channel, rows copied out of the reply's `bytes` field.

#include <grpcpp/grpcpp.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/wire/error_detail.h"
#include "easy_gather.grpc.pb.h"
#include "tests/bench/contestant.h"

namespace engram::bench {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(20);

class EasyGrpc final : public GatherContestant {
 public:
  explicit EasyGrpc(std::string address) : address_(std::move(address)) {}
  ~EasyGrpc() override { DropCalls(); }

  absl::Status Connect(const RowTable&) override { return absl::OkStatus(); }

  absl::Status Prepare(size_t max_in_flight) override {
    DropCalls();
    ended_.Clear();
    calls_.resize(max_in_flight);
    if (stub_ != nullptr) return absl::OkStatus();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(
            absl::ToChronoTime(absl::Now() + kCallTimeout))) {
      return absl::UnavailableError("no connection to " + address_);
    }
    stub_ = EasyGather::NewStub(channel);
    return absl::OkStatus();
  }

  void Rest() override {
    DropCalls();
    stub_.reset();
  }

  absl::Status Start(size_t slot, const Batch& batch,
                     absl::Span<std::byte> out) override {
    calls_[slot] = std::make_unique<Call>();
    Call* const call = calls_[slot].get();
    call->context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
    call->request.mutable_indices()->Add(batch.indices.begin(),
                                         batch.indices.end());
    {
      MutexLock lock(&mutex_);
      ++running_;
    }
    stub_->async()->Gather(&call->context, &call->request, &call->response,
                           [this, slot, call, out](grpc::Status status) {
                             OnDone(slot, *call, out, status);
                           });
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> WaitAny(absl::Time deadline) override {
    return ended_.Pop(deadline);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    EasyGatherRequest request;
    EasyGatherResponse response;
  };

  void OnDone(size_t slot, const Call& call, absl::Span<std::byte> out,
              const grpc::Status& grpc_status) {
    absl::Status status = FromGrpcStatus(grpc_status);
    const std::string& rows = call.response.rows();
    if (status.ok() && rows.size() != out.size()) {
      status = absl::DataLossError(
          absl::StrCat(rows.size(), " bytes of rows, not ", out.size()));
    }
    if (status.ok()) std::memcpy(out.data(), rows.data(), rows.size());
    ended_.Push(slot, status);
    MutexLock lock(&mutex_);
    --running_;
    idle_.NotifyAll();
  }

  // Cancelled calls end at once.
  void DropCalls() {
    for (const std::unique_ptr<Call>& call : calls_) {
      if (call != nullptr) call->context.TryCancel();
    }
    {
      MutexLock lock(&mutex_);
      while (running_ > 0) idle_.Wait(&mutex_);
    }
    calls_.clear();
  }

  const std::string address_;
  std::unique_ptr<EasyGather::Stub> stub_;
  EndedGathers ended_;
  std::vector<std::unique_ptr<Call>> calls_;
  Mutex mutex_;
  CondVar idle_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // calls not yet told
};

}  // namespace

std::unique_ptr<GatherContestant> MakeEasyGrpc(
    const ContestantOptions& options) {
  return std::make_unique<EasyGrpc>(options.addresses[0]);
}

}  // namespace engram::bench

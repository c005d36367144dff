// A part of the floor: gathers of no rows from a table server, of the same kind
// as real ones. Independent of TableClient, so that the floor does not fall or
// rise with it.

#include <grpcpp/grpcpp.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "tests/bench/contestant.h"

namespace engram::bench {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(20);

// On a long-lived stream over a completion queue with a thread of its own,
// which tells the caller's: what any client with gathers in flight does.
class EmptyStream final : public GatherContestant {
 public:
  explicit EmptyStream(std::string address) : address_(std::move(address)) {}
  ~EmptyStream() override { Stop(); }

  absl::Status Connect(const RowTable&) override { return absl::OkStatus(); }

  void Rest() override {
    Stop();
    stub_.reset();
  }

  absl::Status Prepare(size_t) override {
    Rest();
    stub_ = v1::TableService::NewStub(MakeChannel(address_));
    ended_.Clear();
    queue_ = std::make_unique<grpc::CompletionQueue>();
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_wait_for_ready(true);
    stream_ = stub_->PrepareAsyncGatherStream(context_.get(), queue_.get());
    stream_->StartCall(Tag(Event::kStarted));
    thread_ = std::thread([this] { Serve(); });
    return ended_.Pop(absl::Now() + kCallTimeout).status();
  }

  absl::Status Start(size_t, const Batch&, absl::Span<std::byte>) override {
    request_.set_call_id(++call_id_);
    request_.mutable_gather();
    stream_->Write(request_, Tag(Event::kWritten));
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> WaitAny(absl::Time deadline) override {
    return ended_.Pop(deadline);
  }

  bool delivers_rows() const override { return false; }

 private:
  enum class Event : intptr_t { kStarted = 1, kWritten, kRead, kFinished };
  static void* Tag(Event event) { return reinterpret_cast<void*>(event); }

  // A gather has ended when its write and its last piece have: only then may
  // the next be written.
  void Serve() {
    bool written = false;
    bool answered = false;
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      const Event event = static_cast<Event>(reinterpret_cast<intptr_t>(tag));
      if (event == Event::kFinished) {
        ended_.Push(0, status_.ok() ? absl::UnavailableError("the stream ended")
                                    : FromGrpcStatus(status_));
        return;
      }
      if (!ok) {
        Finish();
        continue;
      }
      if (event == Event::kStarted) ended_.Push(0, absl::OkStatus());
      if (event == Event::kWritten) written = true;
      if (event == Event::kRead) answered = OnResponse();
      if (event != Event::kWritten) {
        response_.Clear();
        stream_->Read(&response_, Tag(Event::kRead));
      }
      if (!written || !answered) continue;
      written = answered = false;
      ended_.Push(0, absl::OkStatus());
    }
  }

  // Whether it was the last of its gather.
  bool OnResponse() {
    if (response_.has_error()) {
      ended_.Push(0, FromRpcStatusProto(response_.error()));
    }
    return response_.piece().last();
  }

  void Finish() {
    if (finishing_) return;
    finishing_ = true;
    stream_->Finish(&status_, Tag(Event::kFinished));
  }

  void Stop() {
    if (!thread_.joinable()) return;
    context_->TryCancel();
    thread_.join();
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
    stream_ = nullptr;
    finishing_ = false;
  }

  const std::string address_;
  std::unique_ptr<v1::TableService::Stub> stub_;
  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::GatherStreamRequest,
                                                v1::GatherStreamResponse>>
      stream_;
  v1::GatherStreamRequest request_;
  v1::GatherStreamResponse response_;
  grpc::Status status_;
  uint64_t call_id_ = 0;
  bool finishing_ = false;  // of the thread
  EndedGathers ended_;
  std::thread thread_;
};

// A unary call by the blocking API, whose caller polls the connection itself:
// the least that a call can cost.
class EmptyUnary final : public GatherContestant {
 public:
  explicit EmptyUnary(std::string address) : address_(std::move(address)) {}

  absl::Status Connect(const RowTable&) override { return absl::OkStatus(); }
  absl::Status Prepare(size_t) override {
    stub_ = v1::TableService::NewStub(MakeChannel(address_));
    return absl::OkStatus();
  }
  void Rest() override { stub_.reset(); }
  absl::Status Start(size_t, const Batch&, absl::Span<std::byte>) override {
    return absl::OkStatus();
  }
  absl::StatusOr<size_t> WaitAny(absl::Time deadline) override {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(deadline));
    v1::GatherResponse response;
    ENGRAM_RETURN_IF_ERROR(FromGrpcStatus(
        stub_->Gather(&context, v1::GatherRequest(), &response)));
    return 0;
  }
  bool delivers_rows() const override { return false; }

 private:
  const std::string address_;
  std::unique_ptr<v1::TableService::Stub> stub_;
};

}  // namespace

std::unique_ptr<GatherContestant> MakeEmptyStream(
    const ContestantOptions& options) {
  return std::make_unique<EmptyStream>(options.addresses[0]);
}

std::unique_ptr<GatherContestant> MakeEmptyUnary(
    const ContestantOptions& options) {
  return std::make_unique<EmptyUnary>(options.addresses[0]);
}

}  // namespace engram::bench

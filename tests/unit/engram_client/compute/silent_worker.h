#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_SILENT_WORKER_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_SILENT_WORKER_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/rpc/rpc_server.h"
#include "engram/v1/compute.grpc.pb.h"

namespace engram::test {

// A worker that hangs: it takes calls and answers none, and reads a stream
// only when told to. Its model is told for as long as the test wants. Made to
// answer layers, it gives the streams of each one token back, and never ends a
// step.
class SilentWorker final : public v1::ComputeService::CallbackService {
 public:
  enum class Mode { kSilent, kAnswerLayers };

  SilentWorker(const std::string& address, v1::GetModelResponse model,
               Mode mode = Mode::kSilent)
      : model_(std::move(model)), mode_(mode) {
    auto started = RpcServer::Start({.listen = address, .services = {this}});
    ENGRAM_CHECK(started.ok());
    server_ = *std::move(started);
  }
  ~SilentWorker() override { server_->Shutdown(absl::Now()); }

  void StopTelling() {
    MutexLock lock(&mutex_);
    telling_ = false;
  }
  // Waits for the first stream, and reads it from now on.
  void Read() {
    Stream* stream = nullptr;
    {
      MutexLock lock(&mutex_);
      while (stream_ == nullptr) changed_.Wait(&mutex_);
      stream = stream_;
    }
    stream->ReadNext();
  }
  // Waits until a message of this step and kind was read; all that were.
  std::vector<v1::ForwardRequest> AwaitRead(uint64_t step_id,
                                            v1::ForwardRequest::KindCase kind) {
    MutexLock lock(&mutex_);
    while (true) {
      for (const auto& request : requests_) {
        if (request.step_id() == step_id && request.kind_case() == kind) {
          return requests_;
        }
      }
      changed_.Wait(&mutex_);
    }
  }

  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* /*request*/,
                                     v1::GetModelResponse* response) override {
    MutexLock lock(&mutex_);
    if (!telling_) return new SilentCall;
    *response = model_;
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* /*context*/,
                                  const v1::ApplyRequest* /*request*/,
                                  v1::ApplyResponse* /*response*/) override {
    return new SilentCall;
  }
  grpc::ServerBidiReactor<v1::ForwardRequest, v1::ForwardResponse>* Forward(
      grpc::CallbackServerContext* /*context*/) override {
    auto* const stream = new Stream(this);
    if (mode_ == Mode::kAnswerLayers) stream->ReadNext();
    MutexLock lock(&mutex_);
    if (stream_ == nullptr) stream_ = stream;
    changed_.NotifyAll();
    return stream;
  }

 private:
  struct SilentCall final : public grpc::ServerUnaryReactor {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  class Stream final : public grpc::ServerBidiReactor<v1::ForwardRequest,
                                                      v1::ForwardResponse> {
   public:
    explicit Stream(SilentWorker* worker) : worker_(worker) {}
    void ReadNext() { StartRead(&request_); }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      worker_->Keep(request_);
      if (worker_->mode_ == Mode::kAnswerLayers && request_.has_layer()) {
        return Answer();
      }
      ReadNext();
    }
    void OnWriteDone(bool ok) override {
      if (ok) ReadNext();
    }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    void Answer() {
      response_.set_step_id(request_.step_id());
      v1::StepResult& result = *response_.mutable_result();
      result.set_version(worker_->model_.version());
      result.set_first_token(0);
      result.set_token_count(1);
      result.mutable_result()->set_layer_id(request_.layer().layer_id());
      result.mutable_result()->set_streams(request_.layer().streams());
      StartWrite(&response_);
    }

    SilentWorker* const worker_;
    v1::ForwardRequest request_;
    v1::ForwardResponse response_;
  };

  void Keep(const v1::ForwardRequest& request) {
    MutexLock lock(&mutex_);
    requests_.push_back(request);
    changed_.NotifyAll();
  }

  const v1::GetModelResponse model_;
  const Mode mode_;
  Mutex mutex_;
  CondVar changed_;
  bool telling_ ABSL_GUARDED_BY(mutex_) = true;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<v1::ForwardRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RpcServer> server_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_SILENT_WORKER_H_

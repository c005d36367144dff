#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_

#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/rpc/channel.h"
#include "engram/v1/compute.grpc.pb.h"
#include "engram_client/compute/forward_stream.h"

namespace engram {

// The connection to one worker: a channel, and one Forward stream that is
// opened anew when it has broken.
//
// Thread safety: all methods may be called concurrently.
class WorkerLink {
 public:
  explicit WorkerLink(std::string address)
      : address_(std::move(address)),
        stub_(v1::ComputeService::NewStub(MakeChannel(address_))) {}
  // Closes the stream and waits for its end.
  ~WorkerLink() {
    if (stream_ != nullptr) stream_->Close();
  }
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  const std::string& address() const { return address_; }
  v1::ComputeService::Stub& stub() { return *stub_; }

  std::shared_ptr<ForwardStream> Stream() {
    MutexLock lock(&mutex_);
    if (stream_ == nullptr || stream_->broken()) {
      stream_ = ForwardStream::Open(*stub_, address_);
    }
    return stream_;
  }

 private:
  const std::string address_;
  const std::unique_ptr<v1::ComputeService::Stub> stub_;
  Mutex mutex_;
  std::shared_ptr<ForwardStream> stream_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_

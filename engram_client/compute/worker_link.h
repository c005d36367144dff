#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "engram/v1/compute.grpc.pb.h"
#include "engram_client/compute/forward_stream.h"

namespace engram {

// The connection to one worker: a channel, and its Forward streams. One that
// has broken is replaced.
//
// Thread safety: all methods may be called concurrently.
class WorkerLink {
 public:
  // A step's place on a stream.
  struct Place {
    std::shared_ptr<ForwardStream> stream;
    uint64_t step_id = 0;
  };

  explicit WorkerLink(std::string address);
  // Closes the streams and waits for their end. REQUIRES: not on a thread of
  // gRPC; others have dropped their streams.
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  const std::string& address() const { return address_; }
  v1::ComputeService::Stub& stub() { return *stub_; }

  // A place for a new step whose replies go to `replies`, on a stream with
  // less than `max_steps` in flight (0: no limit) while there are few enough
  // streams. Prefill and decode do not share one: a small step would wait
  // behind the chunks of a large one.
  Place AddStep(const RunReplies& replies, uint64_t tokens, uint64_t max_steps);

 private:
  using Streams = std::vector<std::shared_ptr<ForwardStream>>;

  const std::shared_ptr<ForwardStream>& Choose(Streams& streams,
                                               uint64_t max_steps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetBrokenAside(Streams& streams) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  const std::unique_ptr<v1::ComputeService::Stub> stub_;
  Mutex mutex_;
  Streams small_ ABSL_GUARDED_BY(mutex_);
  Streams large_ ABSL_GUARDED_BY(mutex_);
  Streams ending_ ABSL_GUARDED_BY(mutex_);  // broken ones until their end
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_WORKER_LINK_H_

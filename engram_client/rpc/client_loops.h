#ifndef ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_LOOPS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_LOOPS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/rpc/queue_loop.h"

namespace engram {

// The threads that a client's calls run on: all of them on completion queues,
// none by gRPC's callbacks, because gRPC has one poller for the process and
// every thread beside it that looks for events costs hops between threads.
//
// Thread safety: all methods may be called concurrently. The destructor waits
// for the threads; calls must have ended, and it must not run on one of them.
class ClientLoops {
 public:
  struct Options {
    size_t loop_count = 2;  // each with a thread of its own
    absl::Duration spin;    // as QueueLoop::Options
  };

  // REQUIRES: loop_count > 0.
  explicit ClientLoops(const Options& options);

  // The loops in turn.
  QueueLoop& Next();

 private:
  std::vector<std::unique_ptr<QueueLoop>> loops_;
  std::atomic<size_t> next_{0};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_LOOPS_H_

#include "engram_client/rpc/client_loops.h"

#include "core/base/check.h"

namespace engram {

ClientLoops::ClientLoops(const Options& options) {
  ENGRAM_CHECK(options.loop_count > 0);
  for (size_t i = 0; i < options.loop_count; ++i) {
    loops_.push_back(std::make_unique<QueueLoop>(
        std::make_unique<grpc::CompletionQueue>(),
        QueueLoop::Options{
            .thread_count = 1, .spin = options.spin, .cpus = {}}));
  }
}

QueueLoop& ClientLoops::Next() {
  return *loops_[next_.fetch_add(1, std::memory_order_relaxed) % loops_.size()];
}

}  // namespace engram

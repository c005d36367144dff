#ifndef ENGRAM_CORE_RPC_QUEUE_SERVICE_H_
#define ENGRAM_CORE_RPC_QUEUE_SERVICE_H_

#include <grpcpp/completion_queue.h>

#include "core/rpc/queue_loop.h"

namespace engram {

// A service that takes calls from completion queues.
class QueueService {
 public:
  virtual ~QueueService() = default;

  // Asks for the first calls of a queue, which is served by `loop`; the calls
  // then ask for those after them. Both outlive the calls, each of which has a
  // QueueLoop::Hold.
  virtual void Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_QUEUE_SERVICE_H_

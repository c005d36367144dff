#ifndef ENGRAM_CORE_RPC_REFLECTION_SERVICE_H_
#define ENGRAM_CORE_RPC_REFLECTION_SERVICE_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "core/rpc/queue_service.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace engram {

// grpc.reflection.v1alpha.ServerReflection on completion queues, over the
// descriptors that are linked into this program: gRPC's own one takes a thread
// for each call.
//
// Thread safety: all methods may be called concurrently. Destroy it after the
// gRPC server that it is registered with.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::AsyncService,
      public QueueService {
 public:
  // Open streams; more are RESOURCE_EXHAUSTED.
  static constexpr int kMaxStreams = 16;
  static constexpr size_t kMaxRequestBytes = 4096;

  // Lists `service_names` (full names).
  explicit ReflectionService(std::vector<std::string> service_names)
      : service_names_(std::move(service_names)) {}

  void Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) override;

 private:
  class Call;

  const std::vector<std::string> service_names_;
  std::atomic<int> open_streams_{0};
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_REFLECTION_SERVICE_H_

#ifndef ENGRAM_CORE_RPC_HEALTH_SERVICE_H_
#define ENGRAM_CORE_RPC_HEALTH_SERVICE_H_

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/rpc/queue_service.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace engram {

// grpc.health.v1.Health on completion queues: gRPC's own one brings threads
// with it that take turns with those of the queues in waiting for the network.
//
// Thread safety: all methods may be called concurrently. Destroy it after the
// gRPC server that it is registered with.
class HealthService final : public grpc::health::v1::Health::AsyncService,
                            public QueueService {
 public:
  // Open watches; more are RESOURCE_EXHAUSTED.
  static constexpr size_t kMaxWatches = 1024;

  // Health is kept for "" and for each of `names`: not serving at first.
  explicit HealthService(const std::vector<std::string>& names);
  ~HealthService() override;

  void Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) override;

  void SetServing(bool serving);
  // Watches end, also those that come later.
  void EndWatches();

 private:
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;
  class WatchCall;

  Response::ServingStatus StatusOf(const std::string& name) const;
  grpc::Status Answer(const Request& request, Response& response) const;
  // Why not, if not.
  grpc::Status Add(std::shared_ptr<WatchCall> watch);
  void Remove(const WatchCall* watch);
  std::vector<std::shared_ptr<WatchCall>> Watches() const;

  const std::set<std::string> names_;
  mutable Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<WatchCall>> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_HEALTH_SERVICE_H_

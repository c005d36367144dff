#include "core/rpc/rpc_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/channel.h"
#include "core/rpc/health_service.h"
#include "core/rpc/reflection_service.h"
#include "core/rpc/socket_probe.h"

namespace engram {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

using ServerQueues = std::vector<std::unique_ptr<grpc::ServerCompletionQueue>>;

void SetLimits(grpc::ServerBuilder& builder,
               const RpcServer::Options& options) {
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("engram");
  quota.Resize(options.memory_quota_bytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  // Otherwise a second server on a taken port would bind too, and the kernel
  // would give each of them some of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients send keepalive pings every 6 s, also while they have no call.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(options.handshake_timeout)));
}

void ShutDownUnused(grpc::CompletionQueue& queue) {
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
}

bool IsUnix(const std::string& listen) {
  return absl::StartsWith(listen, kUnixPrefix);
}

std::string WithPort(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

// What reflection lists.
std::vector<std::string> WithOwnServices(std::vector<std::string> names) {
  names.push_back(grpc::health::v1::Health::service_full_name());
  names.push_back(
      grpc::reflection::v1alpha::ServerReflection::service_full_name());
  return names;
}

class RpcServerImpl final : public RpcServer {
 public:
  explicit RpcServerImpl(Options options)
      : options_(std::move(options)),
        health_(options_.service_names),
        reflection_(WithOwnServices(options_.service_names)) {
    if (options_.queues.empty()) options_.queues.emplace_back();
  }

  ~RpcServerImpl() override {
    if (server_ != nullptr) Shutdown(absl::InfinitePast());
  }

  absl::Status Start();

  const std::string& address() const override { return address_; }

  void SetServing(bool serving) override { health_.SetServing(serving); }

  std::vector<QueueLoop*> loops() override {
    std::vector<QueueLoop*> loops;
    for (const std::unique_ptr<QueueLoop>& loop : loops_) {
      loops.push_back(loop.get());
    }
    return loops;
  }

  void Shutdown(absl::Time deadline) override {
    {
      MutexLock lock(&mutex_);
      if (shut_down_) return;
      shut_down_ = true;
    }
    health_.EndWatches();
    const absl::Time earliest = absl::Now();
    // The loops serve on: only they let the calls end.
    server_->Shutdown(absl::ToChronoTime(std::max(deadline, earliest)));
    for (const std::unique_ptr<QueueLoop>& loop : loops_) loop->Stop();
  }

 private:
  void Serve(ServerQueues queues);

  Options options_;
  HealthService health_;
  ReflectionService reflection_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::vector<std::unique_ptr<QueueLoop>> loops_;
  Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status RpcServerImpl::Start() {
  grpc::ServerBuilder builder;
  SetLimits(builder, options_);
  int port = 0;
  builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&health_);
  builder.RegisterService(&reflection_);
  for (grpc::Service* service : options_.services) {
    builder.RegisterService(service);
  }
  ServerQueues queues;
  for (size_t i = 0; i < options_.queues.size(); ++i) {
    queues.push_back(builder.AddCompletionQueue());
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    for (const auto& queue : queues) ShutDownUnused(*queue);
    return absl::UnavailableError(absl::StrCat("cannot listen on ",
                                               options_.listen, ": ",
                                               WhyNotBound(options_.listen)));
  }
  address_ = IsUnix(options_.listen) ? options_.listen
                                     : WithPort(options_.listen, port);
  Serve(std::move(queues));
  return absl::OkStatus();
}

void RpcServerImpl::Serve(ServerQueues queues) {
  for (size_t i = 0; i < queues.size(); ++i) {
    grpc::ServerCompletionQueue& queue = *queues[i];
    QueueLoop& loop = *loops_.emplace_back(
        std::make_unique<QueueLoop>(std::move(queues[i]), options_.queues[i]));
    if (i == 0) {
      health_.Serve(loop, queue);
      reflection_.Serve(loop, queue);
    }
    if (options_.queue_service != nullptr) {
      options_.queue_service->Serve(loop, queue);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options) {
  ENGRAM_RETURN_IF_ERROR(CheckAddress(options.listen));
  if (IsUnix(options.listen)) {
    ENGRAM_RETURN_IF_ERROR(
        CheckUnixPathIsFree(options.listen.substr(kUnixPrefix.size())));
  }
  auto server = std::make_unique<RpcServerImpl>(std::move(options));
  ENGRAM_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace engram

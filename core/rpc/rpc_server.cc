#include "core/rpc/rpc_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/rpc/acceptor.h"
#include "core/rpc/address.h"
#include "core/rpc/channel.h"
#include "core/rpc/health_service.h"
#include "core/rpc/listening_sockets.h"
#include "core/rpc/metric_families.h"
#include "core/rpc/reflection_service.h"

namespace engram {
namespace {

constexpr int kKeepaliveTimeoutMs = 10000;
// Of the time of a queue's thread new connections then take a third at most: a
// crowd that comes at once leaves the rest to those who are there.
constexpr double kConnectionsPerSecondAndThread = 1000;

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
  // Clients send keepalive pings every 6 s, also while they have no call.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMs);
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

// What gRPC does for connections that it accepts itself; both fail for unix
// sockets, which need neither.
void SetTcpOptions(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // What is not acknowledged for as long as a ping ends the connection too.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kKeepaliveTimeoutMs,
             sizeof(kKeepaliveTimeoutMs));
}

Acceptor::Options PaceOf(const RpcServer::Options& options) {
  size_t threads = 0;
  for (const QueueLoop::Options& queue : options.queues) {
    threads += queue.thread_count;
  }
  return {.per_second =
              kConnectionsPerSecondAndThread * static_cast<double>(threads)};
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
        registry_(OrOwnRegistry(options_.metrics)),
        connection_metrics_(*registry_),
        health_(options_.service_names),
        reflection_(WithOwnServices(options_.service_names)) {
    if (options_.queues.empty()) options_.queues.emplace_back();
  }

  ~RpcServerImpl() override {
    if (acceptor_ != nullptr) Shutdown(absl::InfinitePast());
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
    acceptor_->Stop();
    health_.EndWatches();
    const absl::Time earliest = absl::Now();
    // The loops serve on: only they let the calls end.
    server_->Shutdown(absl::ToChronoTime(std::max(deadline, earliest)));
    for (const std::unique_ptr<QueueLoop>& loop : loops_) loop->Stop();
  }

 private:
  void Serve(ServerQueues queues);
  void TakeConnection(int fd);

  Options options_;
  const std::shared_ptr<prometheus::Registry> registry_;
  Acceptor::Metrics connection_metrics_;
  HealthService health_;
  ReflectionService reflection_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::vector<std::unique_ptr<QueueLoop>> loops_;
  std::unique_ptr<Acceptor> acceptor_;
  Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status RpcServerImpl::Start() {
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<ListeningSockets> sockets,
                          ListeningSockets::Open(options_.listen));
  grpc::ServerBuilder builder;
  SetLimits(builder, options_);
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
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
    return absl::InternalError(
        absl::StrCat("gRPC does not start a server for ", options_.listen));
  }
  address_ = sockets->address();
  Serve(std::move(queues));
  acceptor_ = std::make_unique<Acceptor>(
      std::move(sockets), PaceOf(options_), connection_metrics_,
      [this](int fd) { TakeConnection(fd); });
  return absl::OkStatus();
}

void RpcServerImpl::TakeConnection(int fd) {
  SetTcpOptions(fd);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      connection;
  connection.fd = fd;
  connections_->HandleNewConnection(&connection);
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
  auto server = std::make_unique<RpcServerImpl>(std::move(options));
  ENGRAM_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace engram

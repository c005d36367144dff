#include "core/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/channel.h"
#include "core/rpc/socket_probe.h"

namespace engram {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
constexpr int kMaxBlockingThreads = 16;

class RpcServerImpl final : public RpcServer {
 public:
  RpcServerImpl(std::unique_ptr<grpc::Server> server, std::string address,
                std::vector<std::string> health_names)
      : server_(std::move(server)),
        address_(std::move(address)),
        health_names_(std::move(health_names)) {
    SetServing(false);
  }

  ~RpcServerImpl() override { Shutdown(absl::InfinitePast()); }

  const std::string& address() const override { return address_; }

  void SetServing(bool serving) override {
    grpc::HealthCheckServiceInterface* health =
        server_->GetHealthCheckService();
    health->SetServingStatus("", serving);
    for (const std::string& name : health_names_) {
      health->SetServingStatus(name, serving);
    }
  }

  void Shutdown(absl::Time deadline) override {
    {
      MutexLock lock(&mutex_);
      if (shut_down_) return;
      shut_down_ = true;
    }
    const absl::Time earliest = absl::Now();
    server_->Shutdown(absl::ToChronoTime(std::max(deadline, earliest)));
  }

 private:
  const std::unique_ptr<grpc::Server> server_;
  const std::string address_;
  const std::vector<std::string> health_names_;
  Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

// Once a process: both are switches for all servers built later.
void EnableHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

void SetLimits(grpc::ServerBuilder& builder,
               const RpcServer::Options& options) {
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("engram");
  quota.Resize(options.memory_quota_bytes);
  // Reflection, the only service here that takes a thread for each call.
  quota.SetMaxThreads(kMaxBlockingThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  // Otherwise a second server on a taken port would bind too, and the kernel
  // would give each of them some of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients send keepalive pings every 20 s, also while they have no call.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
}

std::string WithPort(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options) {
  ENGRAM_RETURN_IF_ERROR(CheckAddress(options.listen));
  const bool is_unix = absl::StartsWith(options.listen, kUnixPrefix);
  if (is_unix) {
    ENGRAM_RETURN_IF_ERROR(
        CheckUnixPathIsFree(options.listen.substr(kUnixPrefix.size())));
  }
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  SetLimits(builder, options);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(),
                           &port);
  for (grpc::Service* service : options.services) {
    builder.RegisterService(service);
  }
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ",
                                               options.listen, ": ",
                                               WhyNotBound(options.listen)));
  }
  std::string address =
      is_unix ? options.listen : WithPort(options.listen, port);
  return std::make_unique<RpcServerImpl>(std::move(server), std::move(address),
                                         std::move(options.health_names));
}

}  // namespace engram

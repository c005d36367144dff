#include "core/rpc/rpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "core/rpc/channel.h"
#include "core/rpc/queue_calls.h"
#include "engram/v1/table.grpc.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NamedService final : public v1::TableService::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetTable(grpc::CallbackServerContext* context,
                                     const v1::GetTableRequest*,
                                     v1::GetTableResponse* response) override {
    response->set_server_name("here");
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

absl::StatusOr<std::unique_ptr<RpcServer>> Serve(NamedService& service,
                                                 const std::string& listen) {
  return RpcServer::Start({.listen = listen,
                           .services = {&service},
                           .service_names = {"engram.v1.TableService"}});
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
}

std::string NameServedAt(const std::string& address) {
  const auto stub = v1::TableService::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  SetDeadline(context);
  v1::GetTableResponse response;
  const grpc::Status status =
      stub->GetTable(&context, v1::GetTableRequest(), &response);
  return status.ok() ? response.server_name() : status.error_message();
}

TEST(RpcServerTest, TakesAFreePortAndTellsIt) {
  NamedService service;
  const auto server = Serve(service, "127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  EXPECT_TRUE(absl::StartsWith((*server)->address(), "127.0.0.1:"));
  EXPECT_FALSE(absl::EndsWith((*server)->address(), ":0"));
  EXPECT_EQ(NameServedAt((*server)->address()), "here");
}

TEST(RpcServerTest, ServesOnAUnixSocket) {
  const TempDir dir;
  NamedService service;
  const auto server = Serve(service, "unix:" + dir.File("s"));
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ((*server)->address(), "unix:" + dir.File("s"));
  EXPECT_EQ(NameServedAt((*server)->address()), "here");
}

TEST(RpcServerTest, RefusesAPortInUse) {
  NamedService service;
  const auto first = Serve(service, "127.0.0.1:0");
  ASSERT_THAT(first, IsOk());
  NamedService other;
  EXPECT_THAT(Serve(other, (*first)->address()),
              IsError(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr((*first)->address()),
                            HasSubstr("already in use"))));
  EXPECT_EQ(NameServedAt((*first)->address()), "here");
}

TEST(RpcServerTest, RefusesTheSocketOfALivingServer) {
  const TempDir dir;
  const std::string address = "unix:" + dir.File("s");
  NamedService service;
  const auto first = Serve(service, address);
  ASSERT_THAT(first, IsOk());
  NamedService other;
  EXPECT_THAT(Serve(other, address), IsError(absl::StatusCode::kUnavailable,
                                             HasSubstr("already in use")));
  EXPECT_EQ(NameServedAt(address), "here");
}

TEST(RpcServerTest, KeepsAFileThatIsNoSocket) {
  const TempDir dir;
  const std::string path = dir.Write("precious", "data");
  NamedService service;
  EXPECT_THAT(Serve(service, "unix:" + path),
              IsError(absl::StatusCode::kUnavailable, HasSubstr("no socket")));
  EXPECT_EQ(test::ReadAll(path), "data");
}

TEST(RpcServerTest, SaysWhyAnAddressCannotBeBound) {
  NamedService service;
  EXPECT_THAT(Serve(service, "unix:/nowhere/at/all/s"),
              IsError(absl::StatusCode::kUnavailable,
                      HasSubstr("No such file or directory")));
  EXPECT_THAT(
      Serve(service, "no-port"),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("no-port")));
}

TEST(RpcServerTest, ItsQueuesServeCallsToOthersToo) {
  const TempDir dir;
  NamedService service;
  const auto server = Serve(service, "unix:" + dir.File("s"));
  ASSERT_THAT(server, IsOk());
  ASSERT_EQ((*server)->loops().size(), 1U);
  QueueLoop& loop = *(*server)->loops().front();
  struct Ended final : QueueEvent {
    void OnQueueEvent(bool) override { told.Notify(); }
    Notification told;
  } ended;
  const auto stub =
      v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = stub->PrepareAsyncGetTable(
      &context, v1::GetTableRequest(), &loop.queue());
  reader->StartCall();
  v1::GetTableResponse response;
  grpc::Status status;
  reader->Finish(&response, &status, ended.tag());
  ended.told.Wait();
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(response.server_name(), "here");
}

TEST(RpcServerTest, RefusesMessagesAboveTheLimit) {
  NamedService service;
  const auto server = RpcServer::Start({.listen = "127.0.0.1:0",
                                        .services = {&service},
                                        .max_receive_bytes = 1000});
  ASSERT_THAT(server, IsOk());
  const auto stub =
      v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GatherRequest request;
  request.set_version(std::string(2000, 'v'));
  v1::GatherResponse response;
  const grpc::Status status = stub->Gather(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("1000"));
  EXPECT_EQ(NameServedAt((*server)->address()), "here");
}

// Answers GetTable on the first queue that asks for a call.
class QueuedService final : public v1::TableService::WithAsyncMethod_GetTable<
                                v1::TableService::Service>,
                            public QueueService {
 public:
  void Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) override {
    ++queues_served_;
    UnaryCall<v1::GetTableRequest, v1::GetTableResponse>::Await(
        loop,
        {.ask =
             [this, &queue](auto* context, auto* request, auto* writer,
                            void* tag) {
               RequestGetTable(context, request, writer, &queue, &queue, tag);
             },
         .answer =
             [](const v1::GetTableRequest&, v1::GetTableResponse& response) {
               response.set_server_name("queue");
               return grpc::Status::OK;
             }});
  }

  int queues_served() const { return queues_served_; }

 private:
  int queues_served_ = 0;
};

TEST(RpcServerTest, ServesEachQueue) {
  QueuedService service;
  const auto server =
      RpcServer::Start({.listen = "127.0.0.1:0",
                        .services = {&service},
                        .queues = {{.thread_count = 2}, {.thread_count = 1}},
                        .queue_service = &service});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(service.queues_served(), 2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(NameServedAt((*server)->address()), "queue");
  }
}

// A connection without a gRPC client behind it.
class BareConnection {
 public:
  explicit BareConnection(const std::string& path) {
    sockaddr_un address{.sun_family = AF_UNIX};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                         sizeof(address)) == 0;
  }
  ~BareConnection() { close(fd_); }
  BareConnection(const BareConnection&) = delete;
  BareConnection& operator=(const BareConnection&) = delete;

  bool Send(const std::string& bytes) {
    return connected_ && send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                             static_cast<ssize_t>(bytes.size());
  }
  // Whether the server ends it, whatever it says before.
  bool IsEnded() {
    char bytes[256];
    pollfd readable{.fd = fd_, .events = POLLIN};
    while (poll(&readable, 1, /*timeout=*/20000) == 1) {
      if (read(fd_, bytes, sizeof(bytes)) <= 0) return true;
    }
    return false;
  }

 private:
  const int fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool connected_ = false;
};

TEST(RpcServerTest, CutsOffWhoDoesNotSpeakHttp2InTime) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const TempDir dir;
  NamedService service;
  const auto server =
      RpcServer::Start({.listen = "unix:" + dir.File("s"),
                        .services = {&service},
                        .handshake_timeout = absl::Milliseconds(200)});
  ASSERT_THAT(server, IsOk());
  for (const std::string& said :
       {std::string(), preface.substr(0, 11), preface}) {
    BareConnection rude(dir.File("s"));
    ASSERT_TRUE(rude.Send(said));
    EXPECT_TRUE(rude.IsEnded()) << said;
  }
}

TEST(RpcServerTest, ShutdownIsIdempotent) {
  NamedService service;
  auto server = Serve(service, "127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  (*server)->Shutdown(absl::Now());
  (*server)->Shutdown(absl::InfinitePast());
}

}  // namespace
}  // namespace engram

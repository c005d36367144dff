#include "core/rpc/rpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
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
                           .health_names = {"engram.v1.TableService"}});
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

// grpc.health.v1.Health/Check through a generic call, for there are no
// generated stubs: the request is {1: service}, the reply {1: status}.
int HealthOf(const std::string& address, const std::string& service) {
  std::string request = "\x0a";
  request += static_cast<char>(service.size());
  request += service;
  grpc::Slice slice(request);
  const grpc::ByteBuffer buffer(&slice, 1);
  grpc::GenericStub stub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  SetDeadline(context);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    buffer, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return -static_cast<int>(status.error_code());
  grpc::Slice bytes;
  if (!reply.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2) return -100;
  return bytes.begin()[1];
}

constexpr int kServing = 1;
constexpr int kNotServing = 2;

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

TEST(RpcServerTest, HealthFollowsSetServing) {
  NamedService service;
  const auto server = Serve(service, "127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  const std::string& address = (*server)->address();
  EXPECT_EQ(HealthOf(address, ""), kNotServing);
  EXPECT_EQ(HealthOf(address, "engram.v1.TableService"), kNotServing);
  (*server)->SetServing(true);
  EXPECT_EQ(HealthOf(address, ""), kServing);
  EXPECT_EQ(HealthOf(address, "engram.v1.TableService"), kServing);
  EXPECT_EQ(HealthOf(address, "no.such.Service"),
            -static_cast<int>(grpc::StatusCode::NOT_FOUND));
  (*server)->SetServing(false);
  EXPECT_EQ(HealthOf(address, ""), kNotServing);
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

// A stream of grpc.reflection that was asked something and stays open.
class ReflectionStream {
 public:
  explicit ReflectionStream(const std::string& address)
      : stub_(MakeChannel(address)) {
    SetDeadline(context_);
    call_ = stub_.PrepareCall(
        &context_,
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        &queue_);
    call_->StartCall(nullptr);
    if (!Next()) return;
    grpc::Slice slice("\x3a\x00", 2);  // list_services: ""
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    if (!Next()) return;
    grpc::ByteBuffer reply;
    call_->Read(&reply, nullptr);
    answered_ = Next();
  }
  ~ReflectionStream() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
  }

  bool answered() const { return answered_; }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool answered_ = false;
};

TEST(RpcServerTest, StreamsOfReflectionAreBounded) {
  NamedService service;
  const auto server = Serve(service, "127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  std::vector<std::unique_ptr<ReflectionStream>> streams;
  int answered = 0;
  for (int i = 0; i < 24; ++i) {
    streams.push_back(std::make_unique<ReflectionStream>((*server)->address()));
    if (streams.back()->answered()) ++answered;
  }
  EXPECT_GT(answered, 0);
  EXPECT_LE(answered, 16);
  EXPECT_EQ(NameServedAt((*server)->address()), "here");
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
